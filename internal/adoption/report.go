package adoption

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// The reasons of the condition Ready of a policy.
const (
	ReasonAllApplied      passage.Code = "Applied"
	ReasonNothingMatched  passage.Code = "NothingMatched"
	ReasonInvalidSelector passage.Code = "InvalidSelector"
)

// tally is what became of all that a policy takes.
type tally struct {
	policyv1alpha1.PropagationStatus
	// conflict, failure and wait are the first of each, in words.
	conflict, failure string
	pending           int32
}

// count adds up what bindings say.
func count(bindings []*binding) tally {
	var t tally
	slices.SortFunc(bindings, func(a, b *binding) int { return cmp.Compare(a.path(), b.path()) })
	for _, b := range bindings {
		t.Matched++
		condition := meta.FindStatusCondition(b.status.Conditions, workv1alpha2.ConditionFullyApplied)
		switch {
		case condition == nil || condition.ObservedGeneration < b.GetGeneration() || passage.Code(condition.Reason) == ReasonApplying:
			t.pending++
		case condition.Status == metav1.ConditionTrue:
			t.Applied++
		case passage.Code(condition.Reason) == ReasonConflict:
			t.Conflicting++
			if t.conflict == "" {
				t.conflict = condition.Message
			}
		default:
			t.Failed++
			if t.failure == "" {
				t.failure = condition.Message
			}
		}
	}
	return t
}

// conditionOf a policy says in one sentence how far it is, and what to do.
func (t tally) conditionOf(p *Policy) (metav1.ConditionStatus, passage.Reason) {
	for i, err := range p.invalidSelectors() {
		return metav1.ConditionFalse, passage.Because(ReasonInvalidSelector, "spec.resourceSelectors[%d].labelSelector selects nothing: %v", i, err)
	}
	switch {
	case t.Matched == 0:
		return metav1.ConditionUnknown, passage.Because(ReasonNothingMatched, "it takes no resource: none is selected, or another policy has them")
	case t.Failed > 0:
		return metav1.ConditionFalse, passage.Because(ReasonFailed, "%d of %d resources could not be applied, the first: %s", t.Failed, t.Matched, t.failure)
	case t.Conflicting > 0:
		return metav1.ConditionFalse, passage.Because(ReasonConflict, "%d of %d resources exist already and are left alone, the first: %s", t.Conflicting, t.Matched, t.conflict)
	case t.pending > 0:
		return metav1.ConditionUnknown, passage.Because(ReasonApplying, "%d of %d resources are applied", t.Applied, t.Matched)
	}
	return metav1.ConditionTrue, passage.Because(ReasonAllApplied, "all %d resources are applied in all of their clusters", t.Matched)
}

// reporter tells on policies what became of what they take.
type reporter struct {
	client client.Client
	now    func() time.Time
}

// byClaim is the index of bindings by the policy that has taken their resource.
const byClaim = "claim"

func claimIndex(object client.Object) []string {
	key := claimOf(bindingIn(object))
	return []string{key.Namespace + "/" + key.Name}
}

// Reconcile reports one policy: of the cluster, if it is in no namespace.
func (r *reporter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object, policy, status, err := r.read(ctx, request)
	if object == nil || err != nil {
		return ctrl.Result{}, err
	}
	bindings, err := r.bindings(ctx, policy.Key())
	if err != nil {
		return ctrl.Result{}, err
	}
	t := count(bindings)
	next := t.PropagationStatus
	next.Conditions = slices.Clone(status.Conditions)
	next.ObservedGeneration = policy.Generation
	is, reason := t.conditionOf(policy)
	meta.SetStatusCondition(&next.Conditions, metav1.Condition{
		Type: policyv1alpha1.ConditionReady, Status: is, Reason: string(reason.Code), Message: reason.Message,
		ObservedGeneration: policy.Generation, LastTransitionTime: metav1.NewTime(r.now()),
	})
	if equality.Semantic.DeepEqual(*status, next) {
		return ctrl.Result{}, nil
	}
	before := object.DeepCopyObject().(client.Object)
	*status = next
	if err := r.client.Status().Patch(ctx, object, client.MergeFrom(before), client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("write the status of policy %s: %w", request, err)
	}
	return ctrl.Result{}, nil
}

func (r *reporter) read(ctx context.Context, request ctrl.Request) (client.Object, *Policy, *policyv1alpha1.PropagationStatus, error) {
	if request.Namespace == "" {
		p := &policyv1alpha1.ClusterPropagationPolicy{}
		if err := r.client.Get(ctx, request.NamespacedName, p); err != nil {
			return nil, nil, nil, client.IgnoreNotFound(err)
		}
		return p, &Policy{Name: p.Name, Generation: p.Generation, Spec: p.Spec}, &p.Status, nil
	}
	p := &policyv1alpha1.PropagationPolicy{}
	if err := r.client.Get(ctx, request.NamespacedName, p); err != nil {
		return nil, nil, nil, client.IgnoreNotFound(err)
	}
	return p, &Policy{Namespace: p.Namespace, Name: p.Name, Generation: p.Generation, Spec: p.Spec}, &p.Status, nil
}

func (r *reporter) bindings(ctx context.Context, policy Key) ([]*binding, error) {
	claimed := client.MatchingFields{byClaim: policy.Namespace + "/" + policy.Name}
	var all []*binding
	var list workv1alpha2.ResourceBindingList
	if err := r.client.List(ctx, &list, claimed, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ResourceBindings: %w", err)
	}
	for i := range list.Items {
		all = append(all, bindingIn(&list.Items[i]))
	}
	if policy.Namespace != "" {
		return all, nil
	}
	var ofCluster workv1alpha2.ClusterResourceBindingList
	if err := r.client.List(ctx, &ofCluster, claimed, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ClusterResourceBindings: %w", err)
	}
	for i := range ofCluster.Items {
		all = append(all, bindingIn(&ofCluster.Items[i]))
	}
	return all, nil
}
