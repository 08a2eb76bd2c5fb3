package workload

import (
	"fmt"
	"slices"

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

// unstartedStep is a step of an Istio that could not be started.
type unstartedStep struct {
	istio string
	passage.Object
}

// recordUnstartedEvents emits one event for each step that could not be started: such a step has no mark.
func (r *reconciler) recordUnstartedEvents(o Observed, failed []passage.Step) {
	unstarted := slices.DeleteFunc(slices.Clone(failed), func(step passage.Step) bool { return !step.StartedAt.IsZero() })
	r.events.Forget(func(about unstartedStep) bool {
		return about.istio == o.Istio.Name &&
			!slices.ContainsFunc(unstarted, func(step passage.Step) bool { return step.Object == about.Object })
	})
	for _, step := range unstarted {
		if r.events.IsNew(unstartedStep{o.Istio.Name, step.Object}, step.Reason.Message) {
			r.recorder.Eventf(o.eventObject(step), o.Istio, corev1.EventTypeWarning, string(v1.ReasonMigrationFailed), "migrate",
				"cannot be moved to %s: %s", step.To, step.Reason.Message)
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
