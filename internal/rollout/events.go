package rollout

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// recordTransition records a change of the status as an event and in metrics.
func (r *reconciler) recordTransition(m *v1alpha2.Materialize, status v1alpha2.MaterializeStatus) {
	before := meta.FindStatusCondition(m.Status.Conditions, v1alpha2.ConditionUpToDate)
	now := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionUpToDate)
	if now == nil {
		return
	}
	was := v1alpha2.Reason("")
	if before != nil {
		was = v1alpha2.Reason(before.Reason)
	}
	normal := func(reason, format string, args ...any) {
		r.recorder.Eventf(m, nil, corev1.EventTypeNormal, reason, "roll out", format, args...)
	}
	next := m.Status.ActiveGeneration + 1
	completed := status.ActiveGeneration > m.Status.ActiveGeneration
	requested := status.RolloutRequestedAt != nil && !status.RolloutRequestedAt.Equal(m.Status.RolloutRequestedAt)
	is := v1alpha2.Reason(now.Reason)
	switch {
	case completed:
		normal("RolloutCompleted", "generation %d is active with %s", status.ActiveGeneration, status.LastCompletedRolloutEnvironmentdImageRef)
	case requested:
		normal("RolloutRequested", "creating generation %d with %s", next, m.Spec.EnvironmentdImageRef)
	case status.RequestedRolloutHash == status.LastCompletedRolloutHash && m.Status.RequestedRolloutHash != m.Status.LastCompletedRolloutHash:
		becomes := "stays active"
		if is != v1alpha2.ReasonApplied {
			becomes = "is restored"
		}
		normal("RolloutWithdrawn", "generation %d is removed, and generation %d %s", next, m.Status.ActiveGeneration, becomes)
	case is == was:
	case is == v1alpha2.ReasonReadyToPromote:
		normal(now.Reason, "%s", now.Message)
	case is == v1alpha2.ReasonPromoting:
		normal(now.Reason, "promoting generation %d; the promotion cannot be undone", next)
	case now.Status == metav1.ConditionFalse:
		r.recorder.Eventf(m, nil, corev1.EventTypeWarning, now.Reason, "roll out", "%s", now.Message)
	}
	r.metrics.observe(m, status, is, r.now())
}
