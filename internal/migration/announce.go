package migration

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// announce tells in an event what a status says for the first time.
func (r *reconciler) announce(istio *v1.Istio, before, status *v1.WorkloadMigrationStatus, told, condition *metav1.Condition) {
	wasRunning := before != nil && before.State == v1.WorkloadMigrationStateInProgress
	switch {
	case wasRunning && status != nil && status.State == v1.WorkloadMigrationStateCompleted:
		r.recorder.Eventf(istio, nil, corev1.EventTypeNormal, "MigrationCompleted", "migrate",
			"%d of %d workloads run on %s", status.MigratedWorkloads, status.TotalWorkloads, status.TargetRevision)
	case wasRunning && status != nil && status.State == v1.WorkloadMigrationStateFailed:
		r.recorder.Eventf(istio, nil, corev1.EventTypeWarning, string(v1.ReasonMigrationFailed), "migrate",
			"%d of %d workloads run on %s, %d failed", status.MigratedWorkloads, status.TotalWorkloads, status.TargetRevision, status.FailedWorkloads)
	case condition != nil && (told == nil || told.Reason != condition.Reason) && needsPeople(condition):
		r.recorder.Eventf(istio, nil, corev1.EventTypeNormal, condition.Reason, "migrate", "%s", condition.Message)
	}
}

// announceRefusals tells what could not even be started, of which no mark speaks.
func (r *reconciler) announceRefusals(o Observed, before, status *v1.WorkloadMigrationStatus) {
	if status == nil {
		return
	}
	for _, f := range status.Failures {
		if before != nil && slices.ContainsFunc(before.Failures, func(told v1.WorkloadMigrationFailure) bool {
			return told.Kind == f.Kind && told.Namespace == f.Namespace && told.Name == f.Name
		}) {
			continue
		}
		if object := unstartedOf(o, f); object != nil {
			r.recorder.Eventf(object, o.Istio, corev1.EventTypeWarning, string(v1.ReasonMigrationFailed), "migrate",
				"cannot be moved to %s: %s", status.TargetRevision, f.Reason)
		}
	}
}

// unstartedOf is what a failure is about, or nil if it is the failure of a move.
func unstartedOf(o Observed, f v1.WorkloadMigrationFailure) runtime.Object {
	if f.Kind == kindNamespace {
		ns := usage.MetadataOf(kindNamespace)
		ns.Name, ns.UID = f.Name, o.Fleet.Namespaces[f.Name].UID
		return ns
	}
	d := deploymentOf(o.Fleet, deployment(f.Namespace, f.Name))
	if d == nil {
		return nil
	}
	if mark := markOf(d); mark != nil && !mark.Failed.IsZero() {
		return nil
	}
	return d
}
