package revision

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// notReported is why a step is open whose condition the operator has not set.
var notReported = passage.Because(v1.ReasonReconcileError, "the operator has not reported on it")

// planFromConditions reads a plan from conditions: one step, which is done when all of them are met. Unless they are reported for the
// latest spec, it has not failed.
func planFromConditions(kind string, object metav1.Object, step passage.Step, conditions []metav1.Condition, reported bool, met ...v1.ConditionType) passage.Plan {
	subject := passage.Object{APIVersion: v1.GroupVersion.String(), Kind: kind, Name: object.GetName()}
	plan := passage.Plan{Passage: v1.PassageRevision, Subject: subject, Target: step.To}
	if object.GetDeletionTimestamp().IsZero() {
		plan.Hold = installer.WhilePaused(kind, object)
	}
	step.Object, step.State = subject, passage.Done
	for _, wanted := range met {
		condition := meta.FindStatusCondition(conditions, string(wanted))
		if condition == nil {
			step.State, step.Reason = passage.Running, notReported
			break
		}
		step.Reason = passage.Because(condition.Reason, "%s", condition.Message)
		if condition.Status != metav1.ConditionTrue {
			if step.State = stateForReason(v1.Reason(condition.Reason)); step.State == passage.Failed && !reported {
				step.State, step.Reason = passage.Running, notReported
			}
			break
		}
	}
	plan.Steps = []passage.Step{step}
	return plan
}

// stateForReason is how far a step is whose condition is not met for a reason.
func stateForReason(reason v1.Reason) passage.State {
	switch {
	case reason == v1.ReasonPaused:
		return passage.Pending
	case slices.Contains(userReasons, reason):
		return passage.Failed
	}
	return passage.Running
}

// userReasons are those that only a change by a user makes go away.
var userReasons = []v1.Reason{
	v1.ReasonNameAlreadyExists, v1.ReasonRefNotFound, v1.ReasonVersionNotFound,
	v1.ReasonTemplateError, v1.ReasonRefused, v1.ReasonOwnedByOthers, v1.ReasonChartChanged,
	v1.ReasonChartNotVerified,
}

// NeedsUser tells whether the operator tried, and only a user can help.
func NeedsUser(conditions []metav1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
		return c.Type != string(v1.ConditionInUse) && c.Type != string(v1.ConditionResolvedRefs) && c.Status == metav1.ConditionFalse && slices.Contains(userReasons, v1.Reason(c.Reason))
	})
}
