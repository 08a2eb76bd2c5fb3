package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// podsLag is how long the cache of pods may lag behind the status of their workload.
const podsLag = 10 * time.Second

// outcome is the state of a workload that was moved.
type outcome struct {
	state    passage.State
	progress string
	ended    time.Time
	// overdue is when later batches stopped waiting for it; zero if they did not have to.
	overdue time.Time
	// deadline is when the passage of time changes the state.
	deadline time.Time
	reason   *passage.Reason
	// unwritten is the mark to write, where the outcome could not be derived again later.
	unwritten *Mark
}

// outcomeOf evaluates the move of a workload. Ready means the new pods: right after a change, the status of the workload
// still counts the old ones.
func outcomeOf(w *inventory.Workload, pods inventory.Pods, mark Mark, timeout time.Duration, now time.Time) outcome {
	desired := w.Replicas
	o := outcome{
		state:    passage.Running,
		progress: fmt.Sprintf("%d/%d ready", newReadyPods(w), desired),
		deadline: mark.Started.Add(timeout),
	}
	wrongRevisionPods := otherRevisions(pods, mark.Target)
	rolled, ended := rolledOut(w, mark.Started, mark.Generation)
	exceeded, timedOut := deadlineExceeded(w, mark.Started), !now.Before(mark.Started.Add(timeout))
	if desired == 0 {
		// Pods that are left are being deleted.
		wrongRevisionPods, rolled = nil, true
	}
	switch {
	case len(wrongRevisionPods) == 0 && !mark.Done.IsZero():
		return outcome{state: passage.Done, ended: mark.Done, progress: o.progress}
	case rolled && len(wrongRevisionPods) == 0 && !mark.Failed.IsZero() && (!ended.IsZero() || pods[mark.Target] >= int(desired)):
		// The failed move succeeded later; what follows is not part of this move.
		return outcome{state: passage.Done, ended: now, progress: o.progress, unwritten: mark.done(now)}
	case rolled && len(wrongRevisionPods) == 0 && mark.Batch == 0:
		return outcome{state: passage.Done, ended: mark.Started, progress: o.progress}
	case rolled && len(wrongRevisionPods) == 0 && !ended.IsZero():
		return outcome{state: passage.Done, ended: earliest(ended, now), progress: o.progress}
	case rolled && len(wrongRevisionPods) == 0 && pods[mark.Target] >= int(desired):
		return outcome{state: passage.Done, ended: now, progress: o.progress, unwritten: mark.done(now)}
	case !mark.Failed.IsZero():
		return outcome{state: passage.Failed, ended: mark.Failed, reason: mark.Reason}
	case rolled && len(wrongRevisionPods) > 0 && !ended.IsZero():
		if patience := ended.Add(podsLag); now.Before(patience) {
			o.deadline = earliest(o.deadline, patience)
			return o
		}
		return o.fail(mark, now, v1.ReasonWrongRevision, "its pods came up with %s instead of %s",
			strings.Join(wrongRevisionPods, " and "), mark.Target)
	case (exceeded || timedOut) && changedSince(w, mark) && len(wrongRevisionPods) == 0 && pods[mark.Target] > 0:
		// All pods are on the target, and another client has started a rollout.
		return outcome{state: passage.Done, ended: now, progress: o.progress, unwritten: mark.done(now)}
	case exceeded:
		return o.fail(mark, now, v1.ReasonProgressDeadline, "Deployment failed to reach ready state: %d/%d replicas ready",
			newReadyPods(w), desired)
	case timedOut:
		if rolled && len(wrongRevisionPods) > 0 {
			return o.fail(mark, now, v1.ReasonWrongRevision, "its pods came up with %s instead of %s",
				strings.Join(wrongRevisionPods, " and "), mark.Target)
		}
		return o.fail(mark, now, v1.ReasonTimeout, "Readiness timeout exceeded after %s%s", timeout, unreadyPodAdvice(w))
	}
	return o
}

// unreadyPodAdvice is what to do about a workload that goes neither on nor back by itself.
func unreadyPodAdvice(w *inventory.Workload) string {
	if !w.Ordered || w.Rollout.Ready >= w.Replicas {
		return ""
	}
	return "; a StatefulSet replaces no pod while one is not ready: remove the cause, and delete that pod"
}

// waitsForUser tells whether the controller of a workload has done what it does by itself, and replaces no more pods until
// the user does something.
func waitsForUser(w *inventory.Workload) bool {
	r := w.Rollout
	return r.ObservedGeneration >= w.Generation && r.Ready == w.Replicas &&
		(w.OnDelete || w.Partition > 0 && r.Updated >= w.Replicas-w.Partition)
}

func (o outcome) fail(mark Mark, now time.Time, code v1.Reason, format string, args ...any) outcome {
	reason := passage.Because(code, format, args...)
	return outcome{
		state: passage.Failed, progress: o.progress, ended: now, reason: &reason, unwritten: mark.failed(now, reason),
	}
}

// withOverdue is the outcome of a move that has more time than later batches wait. That they do not wait is recorded before
// they start: otherwise their start would imply that the move was over.
func (o outcome) withOverdue(mark Mark, usual time.Duration, now time.Time) outcome {
	since := mark.Overdue
	if since.IsZero() {
		since = mark.Started.Add(usual)
	}
	switch {
	case o.state == passage.Running && now.Before(since):
		o.deadline = earliest(o.deadline, since)
	case o.state == passage.Running:
		o.overdue = since
		if mark.Overdue.IsZero() {
			o.unwritten = mark.overdue(since)
		}
	case !mark.Overdue.IsZero():
		o.overdue = since
		if o.state == passage.Done && mark.Done.IsZero() && o.unwritten == nil {
			o.unwritten = mark.done(o.ended)
		}
	}
	return o
}

// hasWrongRevision tells whether the pods are ready on another revision.
func (o outcome) hasWrongRevision() bool {
	return o.state == passage.Failed && v1.Reason(o.reason.Code) == v1.ReasonWrongRevision
}

// changedSince tells whether the spec of a workload has changed since its move.
func changedSince(w *inventory.Workload, mark Mark) bool { return w.Generation > mark.Generation }

// staysOnOldRevision tells whether pods still run the old revision, with no other change of the workload since its move.
func staysOnOldRevision(w *inventory.Workload, pods inventory.Pods, mark Mark) bool {
	return !changedSince(w, mark) && slices.ContainsFunc(strings.Split(mark.From, ", "), func(from string) bool { return pods[from] > 0 })
}

// rolledOut tells whether only new pods are left, all of them ready, now or at any time since the move began, which made
// that generation. The time is zero if the workload does not report it.
func rolledOut(w *inventory.Workload, started time.Time, generation int64) (bool, time.Time) {
	rollout := w.Rollout
	if rollout.ObservedGeneration < generation || rollout.Updated != rollout.Replicas {
		return false, time.Time{}
	}
	now := rollout.ObservedGeneration >= w.Generation && rollout.Replicas == w.Replicas &&
		rollout.Ready == w.Replicas && rollout.Available == w.Replicas
	if rollout.Progressing == nil || rollout.Progressing.Reason != "NewReplicaSetAvailable" {
		return now, time.Time{}
	}
	// The API keeps whole seconds: the rollout may have ended up to one second later.
	written := rollout.Progressing.LastUpdate.Time
	switch {
	case written.After(started):
		return true, written.Add(time.Second)
	case now && !written.Before(started.Truncate(time.Second)):
		return true, written.Add(time.Second)
	}
	return now, time.Time{}
}

// deadlineExceeded tells whether a Deployment has exceeded its progress deadline since the move began.
func deadlineExceeded(w *inventory.Workload, started time.Time) bool {
	progressing := w.Rollout.Progressing
	return progressing != nil && w.Rollout.ObservedGeneration >= w.Generation &&
		progressing.Status == corev1.ConditionFalse && progressing.Reason == "ProgressDeadlineExceeded" &&
		!progressing.LastUpdate.Time.Before(started.Truncate(time.Second))
}

// newReadyPods is how many new pods are ready, assuming that all old ones are.
func newReadyPods(w *inventory.Workload) int32 {
	if w.Rollout.ObservedGeneration < w.Generation {
		return 0
	}
	old := w.Rollout.Replicas - w.Rollout.Updated
	return max(0, w.Rollout.Ready-old)
}

// otherRevisions are the revisions that pods run, without the given one.
func otherRevisions(pods inventory.Pods, revision string) []string {
	var others []string
	for other := range pods {
		switch other {
		case revision:
		case "":
			others = append(others, "no sidecar")
		default:
			others = append(others, other)
		}
	}
	slices.Sort(others)
	return others
}

// earliest is the earlier of two times; zero ones do not count.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.IsZero() {
		return latest(a, b)
	}
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
