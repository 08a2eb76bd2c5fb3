package workload

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// recordStatusEvent emits an event when the state of a migration changes.
func (r *reconciler) recordStatusEvent(istio *v1.Istio, before, status *v1.WorkloadMigrationStatus, previous, condition *metav1.Condition) {
	turned := before != nil && status != nil && before.State != status.State && before.TargetRevision == status.TargetRevision
	switch {
	case turned && status.State == v1.WorkloadMigrationStateCompleted:
		note := fmt.Sprintf("%d of %d workloads run on %s", status.MigratedWorkloads, status.TotalWorkloads, status.TargetRevision)
		if status.TotalWorkloads == 0 {
			note = "the labels of namespaces name " + status.TargetRevision + ", and no workload had to be moved"
		}
		r.recorder.Eventf(istio, nil, corev1.EventTypeNormal, "MigrationCompleted", "migrate", "%s", note)
	case turned && status.State == v1.WorkloadMigrationStateFailed:
		note := fmt.Sprintf("%d of %d workloads run on %s, %d failed",
			status.MigratedWorkloads, status.TotalWorkloads, status.TargetRevision, status.FailedWorkloads)
		if status.FailedWorkloads == 0 && condition != nil {
			note = condition.Message
		}
		r.recorder.Eventf(istio, nil, corev1.EventTypeWarning, string(v1.ReasonMigrationFailed), "migrate", "%s", note)
	case condition != nil && (previous == nil || previous.Reason != condition.Reason) && needsUserAction(condition):
		r.recorder.Eventf(istio, nil, corev1.EventTypeNormal, condition.Reason, "migrate", "%s", condition.Message)
	}
}

// recordAppliedEvents emits the events of a step that was written. Its mark, or the label of a namespace, is the record that it
// was: a restarted operator does not emit them again.
func (r *reconciler) recordAppliedEvents(o Observed, step passage.Step) {
	if step.Object.Kind == kindNamespace {
		removed := ""
		if _, found := o.Inventory.Namespaces[step.Object.Name].Labels[v1.LabelInjection]; found {
			removed = fmt.Sprintf("; label %s was removed", v1.LabelInjection)
		}
		r.recorder.Eventf(o.eventObject(step), o.Istio, corev1.EventTypeNormal, "Relabelled", "migrate",
			"label %s set to move from %s to %s: %s%s", v1.LabelRevision, step.From, step.To, step.Reason.Message, removed)
		return
	}
	r.recorder.Eventf(o.eventObject(step), o.Istio, corev1.EventTypeNormal, "Migrating", "migrate",
		"%s to move from %s to %s: %s", describeMove(step.Action), step.From, step.To, step.Reason.Message)
	if capped := o.timeouts().capReason(o.find(step.Object)); capped != nil {
		r.recorder.Eventf(o.eventObject(step), o.Istio, corev1.EventTypeWarning, string(capped.Code), "migrate", "%s", capped.Message)
	}
}

func describeMove(action passage.Action) string {
	switch action {
	case ActionRelabel:
		return "its pod label was changed"
	case ActionContinue:
		return "its rollout continues"
	}
	return "it was restarted"
}

// reportedBatches are the batches of one migration that events have told of.
type reportedBatches struct {
	target string
	run    time.Time
	// started are those that have started, open those of which workloads are awaited.
	started, open map[int]bool
}

// observeBatches notes, before anything is written, which batches events have told of. Of a migration that another process has
// started, the status says so: events follow the write of a status.
func (r *reconciler) observeBatches(o Observed, d decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reported := r.batches[o.Istio.Name]
	if reported.started == nil || reported.target != o.Target.Name || !reported.run.Equal(o.lastRunStart()) {
		reported = o.reportedBatches(d)
	}
	// A batch starts again when all of its workloads are retried.
	started := d.startedBatches()
	maps.DeleteFunc(reported.started, func(n int, _ bool) bool { return !started[n] })
	r.batches[o.Istio.Name] = reported
}

// reportedBatches are the batches that the status tells of. It does not say whether its current batch has ended: that shows in
// workloads that have settled since.
func (o Observed) reportedBatches(d decision) reportedBatches {
	reported := reportedBatches{o.Target.Name, o.lastRunStart(), map[int]bool{}, map[int]bool{}}
	status := o.Istio.Status.WorkloadMigration
	if reported.run.IsZero() || status.Batched == nil {
		return reported
	}
	last := int(status.Batched.CurrentBatch)
	for n := range d.startedBatches() {
		reported.started[n] = n <= last
	}
	settled := passage.Plan{Steps: slices.DeleteFunc(slices.Clone(d.Plan.Steps), func(s passage.Step) bool { return s.Batch > last })}.Counts()
	reported.open[last] = last > 0 && o.isRunning() &&
		(!d.hasEnded(last) || settled.Done+settled.Failed > int(status.MigratedWorkloads+status.FailedWorkloads))
	return reported
}

// recordBatchEvents emits an event for each batch that has started, and for each that has ended, since the last time.
func (r *reconciler) recordBatchEvents(o Observed, d decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reported, started := r.batches[o.Istio.Name], d.startedBatches()
	batches := maps.Clone(reported.open)
	maps.Copy(batches, started)
	for _, n := range slices.Sorted(maps.Keys(batches)) {
		begins, ended := started[n] && !reported.started[n], d.hasEnded(n)
		if begins {
			r.recordBatchEvent(o, "BatchStarted", n, "batch %d of %d has started: moving workloads to %s", n, d.Batches, o.Target.Name)
		}
		reported.started[n] = started[n]
		reported.open[n] = reported.open[n] || begins || started[n] && !ended
		if reported.open[n] && ended {
			delete(reported.open, n)
			r.recordBatchEvent(o, "BatchEnded", n, "batch %d of %d has ended: %s", n, d.Batches, d.describeBatch(n))
		}
	}
}

// recordBatchEvent emits an event of a batch, each as an action of its own: events about one version of an object that differ
// only in their note are taken for the same.
func (r *reconciler) recordBatchEvent(o Observed, reason string, batch int, note string, args ...any) {
	r.recorder.Eventf(o.Istio, nil, corev1.EventTypeNormal, reason, fmt.Sprintf("batch-%d", batch), note, args...)
}

// startedBatches are the batches of which a workload has been started. A number that no plan can reach is none.
func (d decision) startedBatches() map[int]bool {
	started := map[int]bool{}
	for i := range d.Plan.Steps {
		if step := &d.Plan.Steps[i]; step.Batch > 0 && step.Batch <= d.Batches && !step.StartedAt.IsZero() {
			started[step.Batch] = true
		}
	}
	return started
}

// hasEnded tells whether no workload of a batch is awaited.
func (d decision) hasEnded(batch int) bool {
	return !slices.ContainsFunc(d.Plan.Steps, func(s passage.Step) bool {
		return s.Batch == batch && !s.State.Settled() && s.OverdueSince.IsZero()
	})
}

// describeBatch tells how the workloads of a batch have ended.
func (d decision) describeBatch(batch int) string {
	all, states := 0, map[passage.State]int{}
	for i := range d.Plan.Steps {
		if step := &d.Plan.Steps[i]; step.Batch == batch {
			all++
			states[step.State]++
		}
	}
	text := fmt.Sprintf("%d of %d workloads run on %s", states[passage.Done], all, d.Plan.Target)
	if failed := states[passage.Failed]; failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	if overdue := states[passage.Running]; overdue > 0 {
		text += fmt.Sprintf(", %d overdue", overdue)
	}
	return text
}

// unstartedStep is a step of an Istio that could not be started.
type unstartedStep struct {
	istio string
	passage.Object
}

// recordUnstartedEvents emits one event for each step that could not be started: such a step has no mark.
func (r *reconciler) recordUnstartedEvents(o Observed, failed []passage.Step) {
	unstarted := slices.DeleteFunc(slices.Clone(failed), func(step passage.Step) bool { return !step.StartedAt.IsZero() })
	r.events.Forget(func(about unstartedStep) bool {
		return about.istio == o.Istio.Name && about.Kind != v1.IstioRevisionTagKind &&
			!slices.ContainsFunc(unstarted, func(step passage.Step) bool { return step.Object == about.Object })
	})
	for _, step := range unstarted {
		if r.events.IsNew(unstartedStep{o.Istio.Name, step.Object}, step.Reason.Message) {
			r.recorder.Eventf(o.eventObject(step), o.Istio, corev1.EventTypeWarning, string(v1.ReasonMigrationFailed), "migrate",
				"cannot be moved to %s: %s", step.To, step.Reason.Message)
		}
	}
}

// recordTagEvents emits one event for each tag that keeps workloads where they are.
func (r *reconciler) recordTagEvents(o Observed, d decision) {
	tagOf := func(name string) unstartedStep {
		return unstartedStep{o.Istio.Name, passage.Object{APIVersion: v1.GroupVersion.String(), Kind: v1.IstioRevisionTagKind, Name: name}}
	}
	r.events.Forget(func(about unstartedStep) bool {
		_, holds := d.tagHolds[about.Name]
		return about.istio == o.Istio.Name && about.Kind == v1.IstioRevisionTagKind && !holds
	})
	for _, name := range slices.Sorted(maps.Keys(d.tagHolds)) {
		if why := d.tagHolds[name]; r.events.IsNew(tagOf(name), why) {
			r.recorder.Eventf(o.Istio, nil, corev1.EventTypeWarning, string(v1.ReasonTagNotMoved), "migrate", "%s", why)
		}
	}
}

// eventObject is the object of a step, as events refer to it.
func (o Observed) eventObject(step passage.Step) runtime.Object {
	if step.Object.Kind != kindNamespace {
		return o.find(step.Object).Reference()
	}
	ns := usage.MetadataOf(kindNamespace)
	ns.Name, ns.UID = step.Object.Name, o.Inventory.Namespaces[step.Object.Name].UID
	return ns
}
