package template

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"k8s.io/apimachinery/pkg/types"

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
	model.AddFinalizer(want.Object, model.FinalizerBinding)
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

// NewDependency is the binding of a template that no policy takes, before anything requires it.
func NewDependency(t model.Template, uid types.UID) *model.Binding {
	b := model.NewBinding(t.Namespace, model.BindingName(t.GroupVersionKind(), t.Name))
	model.AddFinalizer(b.Object, model.FinalizerBinding)
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, UID: uid}
	// Others in the cluster may depend on it too.
	b.Spec.PreserveResourcesOnDeletion = ptr.To(true)
	return b
}

// WithDependent is the binding of a dependency that goes where by goes, too. If no policy takes it, it is taken over only if all
// that require it are, and nothing is written as long as one of those is suspended. Find has the bindings of the others.
func WithDependent(dependency, by *model.Binding, find func(workv1alpha2.BindingSnapshot) *model.Binding) *model.Binding {
	snapshot := workv1alpha2.BindingSnapshot{Namespace: by.GetNamespace(), Name: by.GetName()}
	for _, c := range by.Spec.Clusters {
		snapshot.Clusters = append(snapshot.Clusters, workv1alpha2.TargetCluster{Name: c.Name})
	}
	want := dependency.Copy()
	others := model.WithoutDependent(dependency.Spec.RequiredBy, by)
	want.Spec.RequiredBy = append(slices.Clone(others), snapshot)
	slices.SortFunc(want.Spec.RequiredBy, func(a, b workv1alpha2.BindingSnapshot) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	if model.ClaimOf(dependency) != (model.PolicyKey{}) {
		return want
	}
	want.Spec.ConflictResolution, want.Spec.Suspension = by.Spec.ConflictResolution, by.Spec.Suspension
	for _, r := range others {
		other := find(r)
		if other == nil {
			continue
		}
		if other.Spec.ConflictResolution != policyv1alpha1.ConflictOverwrite {
			want.Spec.ConflictResolution = policyv1alpha1.ConflictAbort
		}
		if s := other.Spec.Suspension; s != nil && ptr.Deref(s.Dispatching, false) {
			want.Spec.Suspension = s
		}
	}
	return want
}
