package template

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// isAborted tells whether one of the policies was aborted.
func isAborted(all []*policy.Policy, key model.PolicyKey) bool {
	return slices.ContainsFunc(all, func(p *policy.Policy) bool { return p.Key() == key && p.Aborted })
}

// DesiredBinding is the binding of a resource as its policy asks for it, made from the one that there is.
func DesiredBinding(t model.Template, uid types.UID, p *policy.Policy, members []policy.Member, replicas int32, have *model.Binding) (*model.Binding, error) {
	clusters, err := policy.Place(p.Spec.Placement, members, replicas)
	if err != nil {
		return nil, err
	}
	want := model.NewBinding(t.Namespace, model.BindingName(t.GroupVersionKind(), t.Name))
	if have != nil {
		want = have.Copy()
	}
	controllerutil.AddFinalizer(want.Object, model.FinalizerBinding)
	model.Claim(want, p.Key())
	*want.Spec = workv1alpha2.ResourceBindingSpec{
		Resource:           workv1alpha2.ObjectReference{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, UID: uid},
		Clusters:           clusters,
		Replicas:           max(0, replicas),
		ConflictResolution: p.Spec.ConflictResolution,
		Placement:          &p.Spec.Placement,
		Suspension:         policy.SuspensionOf(p), PreserveResourcesOnDeletion: p.Spec.PreserveResourcesOnDeletion,
		PropagateDeps: p.Spec.PropagateDeps, SchedulerName: p.Spec.SchedulerName,
		RequiredBy: want.Spec.RequiredBy,
	}
	if want.Spec.ConflictResolution == "" {
		want.Spec.ConflictResolution = policyv1alpha1.ConflictAbort
	}
	return want, nil
}
