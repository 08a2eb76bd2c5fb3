package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// statusOf is the status of a migration, or nil without one.
func statusOf(o Observed, d decision, now time.Time) *v1.WorkloadMigrationStatus {
	before := o.Istio.Status.WorkloadMigration
	hold := d.Plan.Hold
	// Started moves are followed to their end, which is recorded first.
	underway := o.isRunning() && len(d.Wait)+len(d.endedMoves) > 0
	switch {
	case hold != nil && v1.Reason(hold.Code) == v1.ReasonMigrationDisabled && !underway:
		return nil
	case hold != nil && d.abandoned > 0 && before != nil && before.TargetRevision != o.Target.Name:
		// Moves to the former target belong to the former migration until the next one starts.
		return before
	case o.Target.Name == "":
		return &v1.WorkloadMigrationStatus{State: v1.WorkloadMigrationStateIdle}
	}
	status := &v1.WorkloadMigrationStatus{TargetRevision: o.Target.Name, State: v1.WorkloadMigrationStateIdle}
	sameTarget := before != nil && before.TargetRevision == o.Target.Name
	if sameTarget {
		status.State, status.StartTime, status.CompletionTime = before.State, before.StartTime, before.CompletionTime
	}
	at := metav1.NewTime(now.Truncate(time.Second))
	switch {
	case o.isRunning():
		if d.Settled() && !underway {
			status.State, status.CompletionTime = endState(d.Decision), &at
		}
	case status.StartTime == nil:
		if hold != nil || !d.Settled() || o.hasOnlyOneRevision() {
			return status
		}
		status.State, status.StartTime, status.CompletionTime = endState(d.Decision), &at, &at
	case status.State == v1.WorkloadMigrationStateCompleted && endState(d.Decision) == v1.WorkloadMigrationStateCompleted:
		// A completed migration does not change; later workloads start another.
		return before
	case d.Settled():
		if status.State = endState(d.Decision); status.State != before.State {
			// The outcome changed after the end.
			status.CompletionTime = &at
		}
	case endState(d.Decision) == v1.WorkloadMigrationStateCompleted:
		// The failure is gone, and workloads are left to move.
		status.State, status.CompletionTime = v1.WorkloadMigrationStateInProgress, nil
	}
	counts := d.Plan.Counts()
	status.TotalWorkloads, status.MigratedWorkloads, status.FailedWorkloads =
		int32(counts.Total), int32(counts.Done), int32(counts.Failed)
	started := slices.Collect(maps.Keys(d.startedBatches()))
	status.Batched = &v1.BatchedMigrationStatus{CurrentBatch: int32(slices.Max(append(started, 0))), TotalBatches: int32(d.Batches)}
	status.Failures = failuresOf(d.Plan, status.StartTime.Time)
	return status
}

// hasOnlyOneRevision tells whether there has never been another revision to move from.
func (o Observed) hasOnlyOneRevision() bool {
	own := 0
	for i := range o.Revisions {
		if metav1.IsControlledBy(&o.Revisions[i], o.Istio) {
			own++
		}
	}
	status := o.Istio.Status.WorkloadMigration
	return own <= 1 && (status == nil || status.StartTime == nil)
}

// endState is the state of a migration that has settled.
func endState(d passage.Decision) v1.WorkloadMigrationState {
	if len(d.Plan.Failures()) > 0 {
		return v1.WorkloadMigrationStateFailed
	}
	return v1.WorkloadMigrationStateCompleted
}

// startedStatus is the status of a migration that starts now, or of a failed one that is resumed.
func startedStatus(o Observed, now time.Time) *v1.WorkloadMigrationStatus {
	at := metav1.NewTime(now.Truncate(time.Second))
	status := &v1.WorkloadMigrationStatus{
		State: v1.WorkloadMigrationStateInProgress, TargetRevision: o.Target.Name, StartTime: &at,
	}
	before := o.Istio.Status.WorkloadMigration
	if !o.lastRunStart().IsZero() && before.State == v1.WorkloadMigrationStateFailed {
		status = before.DeepCopy()
		status.State, status.CompletionTime = v1.WorkloadMigrationStateInProgress, nil
	}
	return status
}

// migratedConditionOf is the condition WorkloadsMigrated, or nil for an Istio whose workloads are not migrated.
func migratedConditionOf(o Observed, d passage.Decision) *metav1.Condition {
	counts, hold := d.Plan.Counts(), d.Plan.Hold
	left := counts.Pending + counts.Running + counts.Failed
	if d.Plan.HasChanges() {
		// The label of a namespace may be all that is left.
		left = max(left, 1)
	}
	condition := func(status metav1.ConditionStatus, reason passage.Reason) *metav1.Condition {
		return &metav1.Condition{
			Type: string(v1.ConditionWorkloadsMigrated), Status: status,
			Reason: string(reason.Code), Message: reason.Message, ObservedGeneration: o.Istio.Generation,
		}
	}
	if hold != nil && v1.Reason(hold.Code) == v1.ReasonMigrationDisabled {
		if left == 0 || !Interrupted(o.Istio) {
			return nil
		}
		return condition(metav1.ConditionFalse, *hold)
	}
	switch {
	case hold != nil && (left > 0 || o.Target.Name == "" || o.Target.Hold != nil):
		return condition(metav1.ConditionFalse, *hold)
	case d.Outcome == passage.Held && hold == nil:
		return condition(metav1.ConditionFalse, passage.Because(d.Reason.Code, "%s%s", d.Reason.Message, describeSkipped(d.Plan)))
	case d.Settled() && len(d.Plan.Failures()) > 0:
		return condition(metav1.ConditionFalse, passage.Because(v1.ReasonMigrationFailed,
			"%s; see status.workloadMigration.failures, and try again with `fairlead retry istio %s`%s", d.Reason.Message, o.Istio.Name,
			describeSkipped(d.Plan)))
	case left > 0:
		return condition(metav1.ConditionFalse, passage.Because(v1.ReasonMigrating,
			"%ss are being moved to %s%s%s", d.Plan.Noun(), o.Target.Name, describeHeld(d.Plan), describeSkipped(d.Plan)))
	}
	return condition(metav1.ConditionTrue, passage.Because(v1.ReasonMigrated,
		"no %s is left to be moved to %s%s", d.Plan.Noun(), o.Target.Name, describeSkipped(d.Plan)))
}

// Interrupted tells whether a migration of the Istio is unfinished. Without a strategy, only a migration that was started
// with one counts.
func Interrupted(istio *v1.Istio) bool {
	return meta.IsStatusConditionFalse(istio.Status.Conditions, string(v1.ConditionWorkloadsMigrated))
}

// maxHolds is how many reasons to wait a condition has; what else waits is counted.
const maxHolds = 3

// describeHeld tells how many workloads wait for something of their own, and why: for each tag that has not moved, say.
func describeHeld(plan passage.Plan) string {
	var order []string
	counts := map[string]int{}
	for i := range plan.Steps {
		step := &plan.Steps[i]
		if step.State != passage.Pending || !step.Held {
			continue
		}
		if counts[step.Reason.Message]++; counts[step.Reason.Message] == 1 {
			order = append(order, step.Reason.Message)
		}
	}
	var text strings.Builder
	more := 0
	for i, why := range order {
		switch n := counts[why]; {
		case i >= maxHolds:
			more += n
		case n == 1:
			fmt.Fprintf(&text, "; 1 waits: %s", why)
		default:
			fmt.Fprintf(&text, "; %d wait: %s", n, why)
		}
	}
	if more > 0 {
		fmt.Fprintf(&text, "; %d more wait", more)
	}
	return text.String()
}

// describeSkipped names the skipped workloads, which keep an old revision in use. What a tag keeps where it is says which tag,
// and what to do, once.
func describeSkipped(plan passage.Plan) string {
	const atMost = 5
	var stay []string
	more := 0
	told := map[string]bool{}
	for i := range plan.Steps {
		step := &plan.Steps[i]
		if step.State != passage.Skipped {
			continue
		}
		if len(stay) == atMost {
			more++
			continue
		}
		why := string(step.Reason.Code)
		if v1.Reason(why) == v1.ReasonTagNotMoved && !told[step.Reason.Message] {
			told[step.Reason.Message] = true
			why += ": " + step.Reason.Message
		}
		stay = append(stay, fmt.Sprintf("%s (%s)", step.Object, why))
	}
	if len(stay) == 0 {
		return ""
	}
	text := "; not moved: " + strings.Join(stay, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

type ownStatus struct {
	WorkloadMigration *v1.WorkloadMigrationStatus `json:"workloadMigration,omitempty"`
	Conditions        []metav1.Condition          `json:"conditions,omitempty"`
}

// report writes the status if it has changed, and then records events, or returns after how long to write it.
func (r *reconciler) report(ctx context.Context, o Observed, d decision) (time.Duration, error) {
	defer kube.Span(&ctx, kube.StageReport)()
	now := r.now()
	before, previous := o.Istio.Status.WorkloadMigration, migratedCondition(o.Istio)
	status, condition := statusOf(o, d, now), timestampedCondition(o, d, previous, now)
	change := statusChangeOf(before, status)
	switch {
	case previous == nil && condition == nil:
	case previous == nil || condition == nil || previous.Status != condition.Status || previous.Reason != condition.Reason:
		change = stateChanged
	case !equality.Semantic.DeepEqual(previous, condition):
		change = max(change, countersChanged)
	}
	if change == countersChanged && status != nil && status.Batched != nil && d.hasEnded(int(status.Batched.CurrentBatch)) {
		change = batchChanged
	}
	if wait := r.statusDelay(o.Istio.Name, change, now); wait > 0 {
		return wait, nil
	}
	if change != unchanged {
		if err := r.writeStatus(ctx, o.Istio, status, condition); err != nil {
			return 0, client.IgnoreNotFound(err)
		}
	}
	r.recordBatchEvents(o, d)
	r.recordStatusEvent(o.Istio, before, status, previous, condition)
	return 0, nil
}

func (r *reconciler) recordStart(ctx context.Context, o *Observed) error {
	now, previous := r.now(), migratedCondition(o.Istio)
	o.Istio = o.Istio.DeepCopy()
	o.Istio.Status.WorkloadMigration = startedStatus(*o, now)
	d := decide(*o, now)
	status, condition := statusOf(*o, d, now), timestampedCondition(*o, d, previous, now)
	if err := r.writeStatus(ctx, o.Istio, status, condition); err != nil {
		return err
	}
	r.writer.recordRelabelTime()
	o.Istio.Status.WorkloadMigration = status
	meta.SetStatusCondition(&o.Istio.Status.Conditions, *condition)
	r.recorder.Eventf(o.Istio, nil, corev1.EventTypeNormal, "MigrationStarted", "migrate", "moving workloads to %s", o.Target.Name)
	return nil
}

func (r *reconciler) writeStatus(ctx context.Context, istio *v1.Istio, status *v1.WorkloadMigrationStatus, condition *metav1.Condition) error {
	own := ownStatus{WorkloadMigration: status}
	if condition != nil {
		own.Conditions = []metav1.Condition{*condition}
	}
	if err := kube.ApplyStatus(ctx, r.client, v1.GroupVersion.WithKind(v1.IstioKind), istio, own, v1.FieldOwnerMigration); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastStatusWrite[istio.Name] = r.now()
	return nil
}

// timestampedCondition is the condition with its transition time.
func timestampedCondition(o Observed, d decision, previous *metav1.Condition, now time.Time) *metav1.Condition {
	condition := migratedConditionOf(o, d.Decision)
	if condition == nil {
		return nil
	}
	condition.LastTransitionTime = metav1.NewTime(now)
	if previous != nil && previous.Status == condition.Status {
		condition.LastTransitionTime = previous.LastTransitionTime
	}
	return condition
}

func migratedCondition(istio *v1.Istio) *metav1.Condition {
	return meta.FindStatusCondition(istio.Status.Conditions, string(v1.ConditionWorkloadsMigrated))
}
