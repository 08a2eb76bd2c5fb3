package installer

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// Report writes a status that has changed, and reports a new failure to apply the spec in an event and in the log.
func Report[S any](ctx context.Context, t Tools, owner client.Object, before, after S, was, is []metav1.Condition) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	kind, err := t.Client.GroupVersionKindFor(owner)
	if err != nil {
		return err
	}
	if err := kube.ApplyStatus(ctx, t.Client, kind, owner, after, v1.FieldOwner); client.IgnoreNotFound(err) != nil {
		return err
	}
	if failure := newFailure(was, is); failure != nil {
		t.Recorder.Eventf(owner, nil, corev1.EventTypeWarning, failure.Reason, "reconcile", "%s", failure.Message)
		if failure.Reason != string(v1.ReasonReconcileError) { // which is logged with every attempt
			ctrl.LoggerFrom(ctx).Info("cannot apply the spec", "reason", failure.Reason, "why", failure.Message)
		}
	}
	return nil
}

// StateOf is the reason of the first condition that is not true, or StateHealthy.
func StateOf(conditions ...metav1.Condition) v1.State {
	for _, condition := range conditions {
		if condition.Status != metav1.ConditionTrue {
			return v1.State(condition.Reason)
		}
	}
	return v1.StateHealthy
}

// Reconciled is the condition that tells whether a plan has been applied, or why not.
func Reconciled(plan passage.Plan, failure error, done string) metav1.Condition {
	condition := metav1.Condition{Type: string(v1.ConditionReconciled), Status: metav1.ConditionFalse}
	reason := passage.Because(v1.ReasonReconciled, "%s", done)
	left := unfinished(plan)
	switch {
	case failure != nil:
		reason = Because(failure)
	case plan.Hold != nil && left != nil:
		reason = passage.Because(plan.Hold.Code, "%s; pending: %s %s: %s",
			plan.Hold.Message, left.Action, left.Object, left.Reason.Message)
	case plan.Hold != nil && plan.Hold.Code == passage.Code(v1.ReasonBeingDeleted):
		reason = *plan.Hold
	case plan.Hold != nil:
		condition.Status, reason = metav1.ConditionTrue, *plan.Hold
	case left != nil:
		reason = left.Reason
	default:
		condition.Status = metav1.ConditionTrue
	}
	condition.Reason, condition.Message = string(reason.Code), reason.Message
	return condition
}

// unfinished is the most important step that is not done: a failed one before a pending one. Steps that only wait do not
// count.
func unfinished(plan passage.Plan) *passage.Step {
	var first *passage.Step
	for i := range plan.Steps {
		step := &plan.Steps[i]
		if step.Action == ActionRun {
			continue
		}
		if step.State == passage.Failed {
			return step
		}
		if first == nil {
			first = step
		}
	}
	return first
}

// Reported tells whether the latest spec was once fully applied.
func Reported(generation int64, conditions []metav1.Condition) bool {
	condition := meta.FindStatusCondition(conditions, string(v1.ConditionReconciled))
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == generation
}

// expectedReasons are requested by the user, or pass on their own.
var expectedReasons = []v1.Reason{
	v1.ReasonPaused, v1.ReasonBeingDeleted, v1.ReasonNotInstalled, v1.ReasonReleaseDiffers, v1.ReasonReleaseBroken,
	v1.ReasonObjectMissing, v1.ReasonObjectEdited, v1.ReasonIstiodNotReady,
}

// newFailure is the condition that keeps the spec from being applied, if it was not reported before.
func newFailure(before, after []metav1.Condition) *metav1.Condition {
	was := meta.FindStatusCondition(before, string(v1.ConditionReconciled))
	is := meta.FindStatusCondition(after, string(v1.ConditionReconciled))
	if is == nil || is.Status != metav1.ConditionFalse || slices.Contains(expectedReasons, v1.Reason(is.Reason)) {
		return nil
	}
	if was != nil && was.Reason == is.Reason && was.Message == is.Message {
		return nil
	}
	return is
}
