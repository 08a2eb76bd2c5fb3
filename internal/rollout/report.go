package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

func upToDate(generation int64) assessment {
	return assessment{reason: passage.Because(v1alpha2.ReasonApplied, "generation %d serves the current spec", generation)}
}

// conditionStatuses are the statuses of the condition by reason.
var conditionStatuses = map[v1alpha2.Reason]metav1.ConditionStatus{
	v1alpha2.ReasonApplied:        metav1.ConditionTrue,
	v1alpha2.ReasonApplying:       metav1.ConditionUnknown,
	v1alpha2.ReasonReadyToPromote: metav1.ConditionUnknown,
	v1alpha2.ReasonPromoting:      metav1.ConditionUnknown,
	v1alpha2.ReasonFailedDeploy:   metav1.ConditionFalse,
	v1alpha2.ReasonRolloutTimeout: metav1.ConditionFalse,
}

// setCondition writes an assessment to the status. Progress alone causes no write: it changes together with the condition.
func setCondition(status *v1alpha2.MaterializeStatus, m *v1alpha2.Materialize, v assessment, now time.Time) {
	status.ObservedGeneration = m.Generation
	changed := meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha2.ConditionUpToDate, Status: conditionStatuses[v1alpha2.Reason(v.reason.Code)],
		Reason: string(v.reason.Code), Message: v.reason.Message,
		ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(now),
	})
	if changed {
		status.Progress = v.progress
	}
}

// assessment is what the status says about a rollout: the condition in words, and the progress in fields.
type assessment struct {
	reason passage.Reason
	// progress is nil when nothing is being rolled out.
	progress *v1alpha2.RolloutProgress
}

// assess says how far a rollout is, or what blocks it.
func assess(o Observed, d decision, failed applyErrors, now time.Time) assessment {
	m := o.Materialize
	next := o.Next().Number
	step := firstOpenStep(d.Steps)
	rolling := o.Hash != o.Completed() || o.Requested() != o.Hash
	progress := progressOf(o, step, failed.blocking)
	waits := failed.suffix()
	if progress.Message != "" {
		waits = ": " + progress.Message + waits
	}
	assessed := func(code v1alpha2.Reason, format string, args ...any) assessment {
		return assessment{passage.Because(code, format, args...), progress}
	}
	// blocked replaces the progress by the reason why there is none.
	blocked := func(why string) { progress = &v1alpha2.RolloutProgress{Generation: progress.Generation, Message: why} }
	switch {
	case o.Promoting():
		return assessed(v1alpha2.ReasonPromoting, "promoting generation %d%s", next, waits)
	case d.Hold != nil && d.Hold.Code == CodeUnknownHash:
		blocked(d.Hold.Message)
		return assessed(v1alpha2.ReasonApplying, "generation %d is active; %s", m.Status.ActiveGeneration, d.Hold.Message)
	case d.Hold != nil && o.Hash == o.Completed() && rolling:
		blocked("paused")
		return assessed(v1alpha2.ReasonApplying, "generation %d stays active; removing generation %d is on hold: %s",
			m.Status.ActiveGeneration, next, d.Hold.Message)
	case d.Hold != nil && o.Hash == o.Completed() && step != nil:
		blocked("paused")
		return assessed(v1alpha2.ReasonApplying, "generation %d is active; restoring it is on hold: %s %s: %s; %s",
			m.Status.ActiveGeneration, step.Object.Kind, step.Object.Name, step.Reason.Message, d.Hold.Message)
	case d.Hold != nil && o.Hash == o.Completed():
		progress = nil
		return assessed(v1alpha2.ReasonApplied, "generation %d serves the current spec; %s", m.Status.ActiveGeneration, d.Hold.Message)
	case d.Hold != nil && o.Expired(now) && hasReason(m.Status, v1alpha2.ReasonRolloutTimeout):
		// The timeout is final and has been counted; to pause the environment changes neither.
		return timeoutAssessment(o, d.Hold.Message)
	case d.Hold != nil:
		blocked("paused")
		return assessed(v1alpha2.ReasonApplying, "generation %d is on hold: %s", next, d.Hold.Message)
	case o.Expired(now):
		return timeoutAssessment(o)
	case failed.blocking != nil && !errors.As(failed.blocking, new(environmentdError)):
		blocked(fmt.Sprintf("%v%s", failed.blocking, failed.suffix()))
		return assessed(v1alpha2.ReasonFailedDeploy, "%s", progress.Message)
	case len(failed.tolerated) > 0 && (step == nil || !rolling):
		blocked(failed.toleratedText())
		return assessed(v1alpha2.ReasonFailedDeploy, "%s", progress.Message)
	case o.Hash == o.Completed() && rolling && !o.activeIsReady():
		return assessed(v1alpha2.ReasonApplying, "restoring generation %d and removing generation %d%s",
			m.Status.ActiveGeneration, next, waits)
	case o.Hash == o.Completed() && rolling:
		return assessed(v1alpha2.ReasonApplying, "generation %d stays active, removing generation %d%s",
			m.Status.ActiveGeneration, next, waits)
	case o.Hash == o.Completed() && step != nil && step.Action == ActionAwait:
		return assessed(v1alpha2.ReasonApplying, "restoring generation %d%s", m.Status.ActiveGeneration, waits)
	case o.Hash == o.Completed():
		done := upToDate(m.Status.ActiveGeneration)
		if refused := o.refusesAccount(); refused != nil {
			done.reason.Message += "; the next rollout is refused: " + refused.message
		}
		return done
	case step != nil && step.Action == ActionApprove:
		progress.Message = "ready, and not promoted"
		return assessed(v1alpha2.ReasonReadyToPromote, "generation %d is ready; %s%s", next, step.Reason.Message, failed.suffix())
	}
	return assessed(v1alpha2.ReasonApplying, "creating generation %d%s", next, waits)
}

// timeoutAssessment says that a rollout timed out, what becomes of the generations, and what it last waited for.
func timeoutAssessment(o Observed, notes ...string) assessment {
	m := o.Materialize
	parts := []string{fmt.Sprintf("generation %d was not ready to promote within %s of %s, and is removed",
		o.Next().Number, m.Spec.RolloutRequestTimeout, m.Status.RolloutRequestedAt.UTC().Format(time.RFC3339))}
	if o.Active() != nil {
		parts = append(parts, o.describeActive())
	}
	parts = append(parts, "to try again, change the spec or set spec.forceRollout to a new UUID")
	parts = append(parts, notes...)
	message := strings.Join(parts, "; ")
	if waited := o.lastProgress(); waited != "" {
		message += lastState + waited
	}
	return assessment{
		passage.Because(v1alpha2.ReasonRolloutTimeout, "%s", message),
		&v1alpha2.RolloutProgress{Generation: o.Next().Number, Message: o.lastProgress()},
	}
}

// describeActive says what becomes of the active generation when the next one is removed.
func (o Observed) describeActive() string {
	active := o.Active()
	switch ended := o.strategy() == v1alpha2.RolloutImmediatelyPromoteCausingDowntime; {
	case active.StatefulSet == nil:
		return fmt.Sprintf("no generation is active, because generation %d is gone", active.Number)
	case ended && active.isIdle():
		return fmt.Sprintf("generation %d is restarting", active.Number)
	case ended:
		return fmt.Sprintf("generation %d is active again", active.Number)
	}
	return fmt.Sprintf("generation %d stays active", active.Number)
}

// lastState precedes what a rollout last waited for.
const lastState = "; last state: "

// firstOpenStep is the first step that a rollout waits for.
func firstOpenStep(steps []passage.Step) *passage.Step {
	for i := range steps {
		if !steps[i].State.Settled() && !isTolerated(steps[i].Action) {
			return &steps[i]
		}
	}
	return nil
}

// report writes the status if it changes.
func (r *reconciler) report(ctx context.Context, o Observed, d decision, failed applyErrors) error {
	defer kube.Span(&ctx, kube.StageReport)()
	now := r.now()
	status := *o.Materialize.Status.DeepCopy()
	assessed := assess(o, d, failed, now)
	rolloutReason.Set(string(assessed.reason.Code), o.Materialize.Namespace, o.Materialize.Name)
	setCondition(&status, o.Materialize, assessed, now)
	reportAccount(&status, o, metav1.NewTime(now))
	if !o.ForcePromoteIsStale() {
		status.IgnoredForcePromote = ""
	}
	return r.write(ctx, o, status)
}

// write applies the status to the Materialize as it was observed; if that has changed since, the write conflicts.
func (r *reconciler) write(ctx context.Context, o Observed, status v1alpha2.MaterializeStatus) error {
	m := o.Materialize
	if equality.Semantic.DeepEqual(m.Status, status) {
		return nil
	}
	err := kube.ApplyStatus(ctx, r.client, v1alpha2.GroupVersion.WithKind(v1alpha2.MaterializeKind), m, status, v1alpha2.FieldOwner)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	r.recordTransition(m, status)
	return nil
}
