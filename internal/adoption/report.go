package adoption

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// The reasons of the condition Ready of a policy.
const (
	ReasonAllApplied       passage.Code = "Applied"
	ReasonNothingMatched   passage.Code = "NothingMatched"
	ReasonInvalidSelector  passage.Code = "InvalidSelector"
	ReasonInvalidPlacement passage.Code = "InvalidPlacement"
	ReasonNotFollowed      passage.Code = "KindNotFollowed"
	ReasonAborted          passage.Code = "Aborted"
	ReasonAborting         passage.Code = "Aborting"
	ReasonPaused           passage.Code = "Paused"
)

// tally is what became of all that a policy takes.
type tally struct {
	policyv1alpha1.PropagationStatus
	// conflict, failure and suspension are the first of each, in words.
	conflict, failure, suspension string
	pending                       int32
	// trouble is why something that the policy selects cannot be followed.
	trouble error
}

// count adds up what bindings say. What they say of an earlier policy does not count: the detector has yet to tell them.
func count(policy *Policy, bindings []*binding) tally {
	var t tally
	slices.SortFunc(bindings, func(a, b *binding) int { return cmp.Compare(a.path(), b.path()) })
	for _, b := range bindings {
		t.Matched++
		condition := meta.FindStatusCondition(b.status.Conditions, workv1alpha2.ConditionFullyApplied)
		switch {
		case condition == nil || condition.ObservedGeneration < b.GetGeneration() || passage.Code(condition.Reason) == ReasonApplying,
			claimOf(b) == policy.Key() && outdated(b, policy):
			t.pending++
		case condition.Status == metav1.ConditionTrue:
			t.Applied++
		case passage.Code(condition.Reason) == ReasonSuspended:
			t.pending++
			if t.suspension == "" {
				t.suspension = condition.Message
			}
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
	if err := p.invalidPlacement(); err != nil {
		return metav1.ConditionFalse, passage.Because(ReasonInvalidPlacement, "%v", err)
	}
	switch {
	case p.Aborted && t.Matched > 0:
		return metav1.ConditionFalse, passage.Because(ReasonAborting, "it was aborted: %d resources have yet to be let go of", t.Matched)
	case p.Aborted:
		return metav1.ConditionFalse, passage.Because(ReasonAborted,
			"it was aborted: what taking over had changed is put back, and it takes nothing; remove annotation %s to start again", AnnotationAborted)
	case t.trouble != nil:
		return metav1.ConditionFalse, passage.Because(ReasonNotFollowed, "%v", t.trouble)
	case p.Paused:
		return metav1.ConditionUnknown, passage.Because(ReasonPaused, "it is paused: %d of %d resources are applied, and nothing is written to clusters", t.Applied, t.Matched)
	case t.Matched == 0:
		return metav1.ConditionUnknown, passage.Because(ReasonNothingMatched, "it takes no resource: none is selected, or another policy has them")
	case t.Failed > 0:
		return metav1.ConditionFalse, passage.Because(ReasonFailed, "%d of %d resources could not be applied, the first: %s", t.Failed, t.Matched, t.failure)
	case t.Conflicting > 0:
		return metav1.ConditionFalse, passage.Because(ReasonConflict, "%d of %d resources exist already and are left alone, the first: %s", t.Conflicting, t.Matched, t.conflict)
	case t.suspension != "":
		return metav1.ConditionUnknown, passage.Because(ReasonSuspended, "%d of %d resources are applied, the first that is not: %s", t.Applied, t.Matched, t.suspension)
	case t.pending > 0:
		return metav1.ConditionUnknown, passage.Because(ReasonApplying, "%d of %d resources are applied", t.Applied, t.Matched)
	}
	return metav1.ConditionTrue, passage.Because(ReasonAllApplied, "all %d resources are applied in all of their clusters", t.Matched)
}

// reporter tells on policies what became of what they take.
type reporter struct {
	client   client.Client
	kinds    *kinds
	recorder events.EventRecorder
	now      func() time.Time
}

// Reconcile reports one policy: of the cluster, if it is in no namespace.
func (r *reporter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	key := Key{request.Namespace, request.Name}
	object, err := getPolicy(ctx, r.client, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if object == nil {
		unmeasure(key)
		return ctrl.Result{}, nil
	}
	before := object.DeepCopyObject().(client.Object)
	policy, status := policyIn(object)
	bindings, err := r.bindings(ctx, policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	t := count(policy, bindings)
	t.trouble = r.kinds.wrong(ctx, policy)
	measure(key, t.PropagationStatus, t.pending)
	next := t.PropagationStatus
	next.Conditions = slices.Clone(status.Conditions)
	next.ObservedGeneration = policy.Generation
	is, reason := t.conditionOf(policy)
	meta.SetStatusCondition(&next.Conditions, metav1.Condition{
		Type: policyv1alpha1.ConditionReady, Status: is, Reason: string(reason.Code), Message: reason.Message,
		ObservedGeneration: policy.Generation, LastTransitionTime: metav1.NewTime(r.now()),
	})
	var result ctrl.Result
	if t.trouble != nil {
		result.RequeueAfter = followAgain
	}
	if equality.Semantic.DeepEqual(*status, next) {
		return result, nil
	}
	was := meta.FindStatusCondition(status.Conditions, policyv1alpha1.ConditionReady)
	*status = next
	if err := r.client.Status().Patch(ctx, object, client.MergeFrom(before), client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("write the status of policy %s: %w", policy.Key(), err)
	}
	if worthTelling(was, is, reason) {
		kind := corev1.EventTypeNormal
		if is == metav1.ConditionFalse {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(object, nil, kind, string(reason.Code), "Propagate", "%s", reason.Message)
	}
	return result, nil
}

// worthTelling is when all is applied, and when trouble begins: one event for a policy, whatever it takes.
func worthTelling(was *metav1.Condition, is metav1.ConditionStatus, reason passage.Reason) bool {
	return is != metav1.ConditionUnknown && (was == nil || was.Status != is || was.Reason != string(reason.Code))
}

// bindings are those of all that a policy takes, and of what that needs.
func (r *reporter) bindings(ctx context.Context, policy *Policy) ([]*binding, error) {
	all, err := claims(ctx, r.client, policy.Key())
	if err != nil || !policy.Spec.PropagateDeps {
		return all, err
	}
	seen := map[string]bool{}
	for _, b := range all {
		seen[b.String()] = true
	}
	for _, b := range slices.Clone(all) {
		needed, err := required(ctx, r.client, b)
		if err != nil {
			return nil, err
		}
		for _, n := range needed {
			if !seen[n.String()] {
				seen[n.String()] = true
				all = append(all, n)
			}
		}
	}
	return all, nil
}
