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
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// after is the status when a step that is written there has been carried out.
func after(o Observed, action passage.Action, newID func() string, now time.Time) v1alpha2.MaterializeStatus {
	m := o.Materialize
	status := *m.Status.DeepCopy()
	tell := func(reason passage.Reason) { setCondition(&status, m, reason, now) }
	next := o.next().Number
	switch action {
	case ActionIdentify:
		if status.ResourceID == "" {
			status.ResourceID = newID()
		}
		if environmentID(m) == "" {
			status.EnvironmentID = v1alpha2.UUID(m.UID)
		}
	case ActionRelabel:
		status.LastCompletedRolloutHash, status.RequestedRolloutHash = o.completed(), o.requested()
		status.RolloutHashVersion = o.HashVersion
	case ActionRequest:
		status.RequestedRolloutHash, status.RolloutHashVersion = o.Hash, o.HashVersion
		status.RolloutRequestedAt = ptr.To(metav1.NewTime(now))
		status.IgnoredForcePromote = ""
		if m.Spec.ForcePromote == o.Hash {
			// Nobody can have approved of what had yet to be asked for.
			status.IgnoredForcePromote = o.Hash
		}
		tell(passage.Because(v1alpha2.ReasonApplying, "generation %d is made", next))
	case ActionWithdraw:
		status.RequestedRolloutHash, status.RolloutHashVersion = o.Hash, o.HashVersion
		tell(applied(status.ActiveGeneration))
		if !o.back() {
			tell(passage.Because(v1alpha2.ReasonApplying, "generation %d is to serve again", status.ActiveGeneration))
		}
	case ActionCancel:
		tell(timedOut(o))
	case ActionCommit:
		tell(passage.Because(v1alpha2.ReasonPromoting, "generation %d is about to take over", next))
	case ActionComplete:
		status.ActiveGeneration = next
		reached := o.requested()
		if made := o.next(); made.Record != nil && made.Hash != reached && o.UnknownHash == nil {
			// What was asked for was lost on the way, and this was made in its place.
			reached = made.Hash
			status.RequestedRolloutHash, status.RolloutHashVersion = reached, o.HashVersion
		}
		// As it is written there, by whatever algorithm: nothing else moves it while promoting.
		status.LastCompletedRolloutHash = status.RequestedRolloutHash
		status.LastCompletedRolloutEnvironmentdImageRef = o.imageOf(o.next())
		if o.Hash == reached {
			tell(applied(next))
		} else {
			tell(passage.Because(v1alpha2.ReasonApplying, "generation %d serves, and the spec has changed since it was made", next))
		}
	}
	return status
}

func applied(generation int64) passage.Reason {
	return passage.Because(v1alpha2.ReasonApplied, "generation %d serves what the spec asks for", generation)
}

// imageOf is the image of environmentd in a generation, as far as anybody knows.
func (o Observed) imageOf(g *Generation) string {
	switch {
	case g.Record != nil:
		return g.Record.Materialize.Spec.EnvironmentdImageRef
	case g.StatefulSet != nil && len(g.StatefulSet.Spec.Template.Spec.Containers) > 0:
		return g.StatefulSet.Spec.Template.Spec.Containers[0].Image
	}
	return o.Materialize.Spec.EnvironmentdImageRef
}

// statuses are those of the condition for each of its reasons.
var statuses = map[v1alpha2.Reason]metav1.ConditionStatus{
	v1alpha2.ReasonApplied:        metav1.ConditionTrue,
	v1alpha2.ReasonApplying:       metav1.ConditionUnknown,
	v1alpha2.ReasonReadyToPromote: metav1.ConditionUnknown,
	v1alpha2.ReasonPromoting:      metav1.ConditionUnknown,
	v1alpha2.ReasonFailedDeploy:   metav1.ConditionFalse,
	v1alpha2.ReasonRolloutTimeout: metav1.ConditionFalse,
}

func setCondition(status *v1alpha2.MaterializeStatus, m *v1alpha2.Materialize, reason passage.Reason, now time.Time) {
	status.ObservedGeneration = m.Generation
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha2.ConditionUpToDate, Status: statuses[v1alpha2.Reason(reason.Code)],
		Reason: string(reason.Code), Message: reason.Message,
		ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// conditionOf says in one sentence where a rollout is, or what keeps it.
func conditionOf(o Observed, d decision, failed setbacks, now time.Time) passage.Reason {
	m := o.Materialize
	next := o.next().Number
	step := head(d.Steps)
	rolling := o.Hash != o.completed() || o.requested() != o.Hash
	waits := waiting(step, failed.stopped) + failed.besides()
	switch {
	case o.promoting():
		return passage.Because(v1alpha2.ReasonPromoting, "generation %d takes over%s", next, waits)
	case d.Hold != nil && d.Hold.Code == CodeUnknownHash:
		return passage.Because(v1alpha2.ReasonApplying, "generation %d serves, and %s", m.Status.ActiveGeneration, d.Hold.Message)
	case d.Hold != nil && o.Hash == o.completed():
		return passage.Because(v1alpha2.ReasonApplied, "generation %d serves what the spec asks for; %s", m.Status.ActiveGeneration, d.Hold.Message)
	case d.Hold != nil && o.expired(now) && told(m.Status, v1alpha2.ReasonRolloutTimeout):
		// It has failed, and was counted: to pause it changes neither.
		return timedOut(o, d.Hold.Message)
	case d.Hold != nil:
		return passage.Because(v1alpha2.ReasonApplying, "generation %d waits: %s", next, d.Hold.Message)
	case o.expired(now):
		return timedOut(o)
	case failed.stopped != nil && !errors.As(failed.stopped, new(unheard)):
		return passage.Because(v1alpha2.ReasonFailedDeploy, "%v%s", failed.stopped, failed.besides())
	case len(failed.aside) > 0 && (step == nil || !rolling):
		return passage.Because(v1alpha2.ReasonFailedDeploy, "%s", failed.beside())
	case o.Hash == o.completed() && rolling && !o.back():
		return passage.Because(v1alpha2.ReasonApplying, "generation %d is to serve again, and generation %d is taken back%s",
			m.Status.ActiveGeneration, next, waits)
	case o.Hash == o.completed() && rolling:
		return passage.Because(v1alpha2.ReasonApplying, "generation %d goes on to serve, and generation %d is taken back%s",
			m.Status.ActiveGeneration, next, waits)
	case o.Hash == o.completed() && step != nil && step.Action == ActionAwait:
		return passage.Because(v1alpha2.ReasonApplying, "generation %d is to serve again%s", m.Status.ActiveGeneration, waits)
	case o.Hash == o.completed():
		return applied(m.Status.ActiveGeneration)
	case step != nil && step.Action == ActionApprove:
		return passage.Because(v1alpha2.ReasonReadyToPromote, "generation %d is ready; %s%s", next, step.Reason.Message, failed.besides())
	}
	return passage.Because(v1alpha2.ReasonApplying, "generation %d is made%s", next, waits)
}

// timedOut says that a rollout took too long, what else is to be known, and what it waited for to the end.
func timedOut(o Observed, besides ...string) passage.Reason {
	m := o.Materialize
	parts := []string{fmt.Sprintf("generation %d was not ready to be promoted within %s of %s, and is removed",
		o.next().Number, m.Spec.RolloutRequestTimeout, m.Status.RolloutRequestedAt.UTC().Format(time.RFC3339))}
	if o.active() != nil {
		parts = append(parts, o.survivor())
	}
	parts = append(parts, "change the spec, or set forceRollout to a new UUID to try it again")
	parts = append(parts, besides...)
	message := strings.Join(parts, "; ")
	if waited := o.waitedFor(); waited != "" {
		message += toTheEnd + waited
	}
	return passage.Because(v1alpha2.ReasonRolloutTimeout, "%s", message)
}

// survivor is what becomes of the generation that served when the next one is given up.
func (o Observed) survivor() string {
	active := o.active()
	switch ended := o.strategy() == v1alpha2.RolloutImmediatelyPromoteCausingDowntime; {
	case active.StatefulSet == nil:
		return fmt.Sprintf("nothing serves, for generation %d is gone", active.Number)
	case ended && active.idle():
		return fmt.Sprintf("generation %d is started again", active.Number)
	case ended:
		return fmt.Sprintf("generation %d serves again", active.Number)
	}
	return fmt.Sprintf("generation %d goes on to serve", active.Number)
}

// toTheEnd is before what a rollout that took too long waited for.
const toTheEnd = "; at the end: "

// waitedFor is what a rollout last waited for. Only the operator's last word on it tells, whoever that operator was.
func (o Observed) waitedFor() string {
	condition := meta.FindStatusCondition(o.Materialize.Status.Conditions, v1alpha2.ConditionUpToDate)
	if condition == nil {
		return ""
	}
	said, next := condition.Message, o.next().Number
	switch v1alpha2.Reason(condition.Reason) {
	case v1alpha2.ReasonRolloutTimeout:
		_, waited, _ := strings.Cut(said, toTheEnd)
		return waited
	case v1alpha2.ReasonReadyToPromote:
		return "it was ready, and nobody had promoted it"
	case v1alpha2.ReasonFailedDeploy:
		return said
	}
	if strings.HasPrefix(said, fmt.Sprintf("generation %d waits: it is paused", next)) {
		return "it was paused"
	}
	waited, _ := strings.CutPrefix(said, fmt.Sprintf("generation %d is made: ", next))
	if waited == said {
		return ""
	}
	waited, _, _ = strings.Cut(waited, besides)
	return waited
}

// waiting is what a rollout waits for, as the end of a sentence.
func waiting(step *passage.Step, failure error) string {
	switch {
	case failure != nil:
		return fmt.Sprintf(": %v", failure)
	case step == nil:
		return ""
	case step.Action == ActionRemove:
		return fmt.Sprintf(": %s is going", step.Object)
	case step.Progress != "":
		return fmt.Sprintf(": %s, %s", step.Object, step.Progress)
	}
	return fmt.Sprintf(": %s, %s", step.Object, step.Reason.Message)
}

// head is the first step that a rollout waits for.
func head(steps []passage.Step) *passage.Step {
	for i := range steps {
		if !steps[i].State.Settled() && !aside(steps[i].Action) {
			return &steps[i]
		}
	}
	return nil
}

// report writes the status, if it says anything new.
func (r *reconciler) report(ctx context.Context, o Observed, d decision, failed setbacks) error {
	now := r.now()
	status := *o.Materialize.Status.DeepCopy()
	setCondition(&status, o.Materialize, conditionOf(o, d, failed, now), now)
	if !o.leftOver() {
		status.IgnoredForcePromote = ""
	}
	return r.write(ctx, o, status)
}

// write the status of a resource as it was looked at: of one that was changed since, that is a conflict.
func (r *reconciler) write(ctx context.Context, o Observed, status v1alpha2.MaterializeStatus) error {
	m := o.Materialize
	if equality.Semantic.DeepEqual(m.Status, status) {
		return nil
	}
	err := r.client.Status().Apply(ctx, &statusConfiguration{
		TypeMetaApplyConfiguration: *metav1ac.TypeMeta().WithKind(v1alpha2.MaterializeKind).WithAPIVersion(v1alpha2.GroupVersion.String()),
		ObjectMetaApplyConfiguration: metav1ac.ObjectMeta().WithNamespace(m.Namespace).WithName(m.Name).
			WithResourceVersion(m.ResourceVersion),
		Status: status,
	}, client.FieldOwner(v1alpha2.FieldOwner), client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of Materialize %s/%s: %w", m.Namespace, m.Name, err)
	}
	r.announce(m, status)
	return nil
}

// statusConfiguration is the part of a Materialize that this passage owns.
type statusConfiguration struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`
	Status                                 v1alpha2.MaterializeStatus `json:"status"`
}

func (*statusConfiguration) IsApplyConfiguration() {}
