package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// Counts are the templates of a policy by the states of their bindings.
type Counts struct {
	policyv1alpha1.PropagationStatus
	// conflict, failure and suspension are the first of each, in words.
	conflict, failure, suspension string
	pending                       int32
	// deferred are those that follow an earlier policy until their templates change, and unplaced those that go nowhere until then.
	deferred, unplaced int32
	// notJoined are the clusters that the policy asks for by name and that are no members.
	notJoined []string
	// kindError is why a kind that the policy selects cannot be watched.
	kindError error
}

// Count adds up the states of bindings. A binding that was written for an earlier spec of the policy, or for other members, is
// pending.
func Count(policy *Policy, bindings []*model.Binding, members []Member) Counts {
	t := Counts{notJoined: NotJoined(policy.Spec.Placement, members)}
	if policy.Aborted && policy.Status != nil {
		t.Released = max(0, policy.Status.Matched+policy.Status.Released-int32(len(bindings)))
	}
	slices.SortFunc(bindings, func(a, b *model.Binding) int { return cmp.Compare(a.Path(), b.Path()) })
	for _, b := range bindings {
		t.Matched++
		condition := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.ConditionFullyApplied)
		switch {
		case condition == nil || condition.ObservedGeneration < b.GetGeneration() || passage.Code(condition.Reason) == model.ReasonApplying,
			model.ClaimOf(b) == policy.Key() && IsOutdated(b, policy, members):
			t.pending++
		case passage.Code(condition.Reason) == model.ReasonDeferred:
			t.unplaced++
		case condition.Status == metav1.ConditionTrue:
			t.Applied++
			if model.IsDeferred(b) {
				t.deferred++
			}
		case passage.Code(condition.Reason) == model.ReasonSuspended:
			t.pending++
			if t.suspension == "" {
				t.suspension = condition.Message
			}
		case passage.Code(condition.Reason) == model.ReasonConflict:
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

// Condition is the condition Ready of a policy. Clusters that have not joined keep no other cluster waiting, and are named
// whatever else there is to report.
func (t Counts) Condition(p *Policy) (metav1.ConditionStatus, passage.Reason) {
	is, reason := t.condition(p)
	if len(t.notJoined) == 0 || p.Aborted || reason.Code == model.ReasonUnsupported {
		return is, reason
	}
	notJoined := NotJoinedReason(t.notJoined)
	code := reason.Code
	if is == metav1.ConditionTrue {
		is, code = metav1.ConditionFalse, notJoined.Code
		reason.Message = fmt.Sprintf("all %d resources are applied in the clusters that have joined", t.Matched)
	}
	return is, passage.Because(code, "%s; %s", notJoined.Message, reason.Message)
}

func (t Counts) condition(p *Policy) (metav1.ConditionStatus, passage.Reason) {
	switch {
	case p.Aborted && t.Matched > 0:
		return metav1.ConditionFalse, passage.Because(model.ReasonAborting, "the policy is aborted: %d resources not yet released", t.Matched)
	case p.Aborted:
		return metav1.ConditionFalse, passage.Because(model.ReasonAborted,
			"the policy is aborted: its resources are released and their originals restored; remove annotation %s to start again", model.AnnotationAborted)
	}
	if unsupported := p.Unsupported(); unsupported != nil {
		return metav1.ConditionFalse, *unsupported
	}
	if invalid := p.SelectorErrors(); len(invalid) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(invalid)))
		return metav1.ConditionFalse, passage.Because(model.ReasonInvalidSelector, "spec.resourceSelectors[%d].labelSelector selects nothing: %v", first, invalid[first])
	}
	if err := p.KindsError(); err != nil {
		return metav1.ConditionFalse, passage.Because(model.ReasonInvalidSelector, "%v", err)
	}
	if err := p.PlacementError(); err != nil {
		return metav1.ConditionFalse, passage.Because(model.ReasonInvalidPlacement, "%v", err)
	}
	switch {
	case t.kindError != nil:
		return metav1.ConditionFalse, passage.Because(model.ReasonNotFollowed, "%v", t.kindError)
	case p.Paused:
		return metav1.ConditionUnknown, passage.Because(model.ReasonPaused, "the policy is paused: %d of %d resources are applied, and nothing is written to clusters", t.Applied, t.Matched)
	case t.Matched == 0:
		return metav1.ConditionUnknown, passage.Because(model.ReasonNothingMatched, "the policy takes no resources: none is selected, or other policies take them")
	case t.Failed > 0:
		return metav1.ConditionFalse, passage.Because(model.ReasonFailed, "%d of %d resources could not be applied, the first: %s", t.Failed, t.Matched, t.failure)
	case t.Conflicting > 0:
		return metav1.ConditionFalse, passage.Because(model.ReasonConflict, "%d of %d resources exist already and are left alone, the first: %s", t.Conflicting, t.Matched, t.conflict)
	case t.suspension != "":
		return metav1.ConditionUnknown, passage.Because(model.ReasonSuspended, "%d of %d resources are applied, the first that is not: %s", t.Applied, t.Matched, t.suspension)
	case t.pending > 0:
		return metav1.ConditionUnknown, passage.Because(model.ReasonApplying, "%d of %d resources are applied", t.Applied, t.Matched)
	case t.unplaced > 0:
		return metav1.ConditionUnknown, passage.Because(model.ReasonDeferred,
			"%d of %d resources are applied; %d wait until their templates change, because spec.activationPreference is Lazy", t.Applied, t.Matched, t.unplaced)
	case t.deferred > 0:
		return metav1.ConditionTrue, passage.Because(model.ReasonAllApplied,
			"all %d resources are applied in all of their clusters; %d of them follow the earlier policy until their templates change, because spec.activationPreference is Lazy",
			t.Matched, t.deferred)
	}
	return metav1.ConditionTrue, passage.Because(model.ReasonAllApplied, "all %d resources are applied in all of their clusters", t.Matched)
}

// needsEvent holds when a policy becomes ready or not ready, or not ready for another reason.
func needsEvent(previous *metav1.Condition, is metav1.ConditionStatus, reason passage.Reason) bool {
	return is != metav1.ConditionUnknown && (previous == nil || previous.Status != is || previous.Reason != string(reason.Code))
}
