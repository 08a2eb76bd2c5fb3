package istio

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// retireSteps retire and prune the revisions that are not the target.
func retireSteps(o Observed, target string, now time.Time) []passage.Step {
	var steps []passage.Step
	for _, revision := range o.own() {
		if revision.Name == target {
			continue
		}
		if retire := retireStep(o, revision, target); retire != nil {
			steps = append(steps, *retire)
		}
		steps = append(steps, pruneStep(o, revision, target, now))
	}
	return steps
}

// retireStep records the time: the grace period counts from it, across restarts of the operator.
func retireStep(o Observed, revision Revision, target string) *passage.Step {
	if !revision.inactiveSince().IsZero() || !revision.DeletionTimestamp.IsZero() || !o.owns(target) {
		return nil
	}
	return &passage.Step{
		Object: object(v1.IstioRevisionKind, revision.Name),
		Action: ActionRetire,
		State:  passage.Pending,
		Reason: passage.Because(v1.ReasonInactive, "IstioRevision %s is the active one now", target),
	}
}

func pruneStep(o Observed, revision Revision, target string, now time.Time) passage.Step {
	step := passage.Step{
		Object: object(v1.IstioRevisionKind, revision.Name),
		Action: ActionPrune,
		From:   revision.Spec.Version,
		State:  passage.Running,
	}
	uses := o.Usage.Revision(revision.Name)
	unused := meta.FindStatusCondition(revision.Status.Conditions, string(v1.ConditionInUse))
	since, due := o.pruneTime(revision, now)
	active := o.revision(target)
	switch {
	case !revision.DeletionTimestamp.IsZero():
		step.Reason = passage.Because(v1.ReasonBeingDeleted, "being uninstalled")
		if lingers := installer.RemainingFinalizers(revision); lingers != nil {
			step.Reason = *lingers
		}
	case !uses.Known():
		step.Reason = passage.Because(v1.ReasonUsageCheckFailed,
			"kept while its users are unknown: the API server refuses to list %s", strings.Join(uses.Forbidden, " and "))
	case uses.OnlyTags() && o.countFollowingTags(revision.Name, target) == uses.Tags:
		step.Reason = passage.Because(v1.ReasonInactive,
			"used only by tags that are moving; deleted when the tags have moved and the grace period is over")
	case uses.Used():
		step.State = passage.Later
		step.Reason = passage.Because(v1.ReasonRevisionInUse, "kept while in use by %s", uses)
	case unused == nil || unused.Status != metav1.ConditionFalse:
		step.Reason = passage.Because(v1.ReasonInactive, "its usage is not reported yet")
	case active == nil || !revisionReadiness(active.IstioRevision).ready:
		step.Reason = passage.Because(v1.ReasonInactive, "unused; deleted when IstioRevision %s is ready", target)
	case now.Before(due):
		step.Reason = passage.Because(v1.ReasonInactive, "unused since %s; deleted at %s",
			formatTime(since), formatTime(due))
	default:
		step.State = passage.Pending
		step.Reason = passage.Because(v1.ReasonInactive, "unused since %s, and IstioRevision %s is ready",
			formatTime(since), target)
	}
	return step
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// pruneTime is since when a revision is both inactive and unused, and when its grace period is over.
func (o Observed) pruneTime(revision Revision, now time.Time) (since, due time.Time) {
	since = revision.inactiveSince()
	if since.IsZero() {
		// This plan records it.
		since = now
	}
	if unused := meta.FindStatusCondition(revision.Status.Conditions, string(v1.ConditionInUse)); unused != nil &&
		unused.LastTransitionTime.After(since) {
		since = unused.LastTransitionTime.Time
	}
	grace := o.Istio.Spec.UpdateStrategy.InactiveRevisionDeletionGracePeriod()
	if grace > 0 {
		// The API keeps whole seconds: it may have happened up to one second later.
		grace += time.Second
	}
	return since, since.Add(grace)
}

// inactiveSince is zero for an active revision, or one without a recorded time.
func (r Revision) inactiveSince() time.Time {
	since, err := time.Parse(time.RFC3339, r.Annotations[v1.AnnotationInactiveSince])
	if err != nil {
		return time.Time{}
	}
	return since
}

// describeKept names the revisions that stay although they are not the target, for the status of the Istio.
func describeKept(plan passage.Plan) string {
	var names []string
	for _, s := range plan.Steps {
		if s.Action == ActionPrune && s.State == passage.Later {
			names = append(names, s.Object.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; kept while in use: %s", strings.Join(names, ", "))
}

// statusLagsUsage tells whether the condition InUse of a revision lags behind its usage.
func statusLagsUsage(o Observed, plan passage.Plan) bool {
	for _, s := range plan.Steps {
		if s.Action != ActionPrune || s.State != passage.Later {
			continue
		}
		if r := o.revision(s.Object.Name); r != nil && !meta.IsStatusConditionTrue(r.Status.Conditions, string(v1.ConditionInUse)) {
			return true
		}
	}
	return false
}

// nextPruneTime is when a grace period ends, if one is running.
func nextPruneTime(o Observed, plan passage.Plan, now time.Time) (time.Time, bool) {
	var next time.Time
	for _, s := range plan.Steps {
		if s.Action != ActionPrune || s.State != passage.Running {
			continue
		}
		if revision := o.revision(s.Object.Name); revision != nil {
			if _, due := o.pruneTime(*revision, now); due.After(now) && (next.IsZero() || due.Before(next)) {
				next = due
			}
		}
	}
	return next, !next.IsZero()
}
