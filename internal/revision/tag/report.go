package tag

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// report writes the status if it has changed.
func (r *reconciler) report(ctx context.Context, o Observed, plan passage.Plan, failure error) error {
	status := statusOf(o, plan, failure, r.Now())
	return installer.Report(ctx, r.Tools, o.Tag, o.Tag.Status, status, o.Tag.Status.Conditions, status.Conditions)
}

func statusOf(o Observed, plan passage.Plan, failure error, now time.Time) v1.IstioRevisionTagStatus {
	status := *o.Tag.Status.DeepCopy()
	status.ObservedGeneration = o.Tag.Generation
	if to := o.pointsTo(); to != nil && o.Release.Installed() {
		status.IstioRevision, status.IstiodNamespace = to.Name, to.Spec.Namespace
	}
	if whileNameIsTaken(o) != nil && len(o.ObsoleteReleases) == 0 {
		status.IstioRevision, status.IstiodNamespace = "", ""
	}
	reconciled := installer.Reconciled(plan, failure, fmt.Sprintf("the tag points to IstioRevision %s", plan.Target))
	inUse := o.Usage.Condition()
	status.State = installer.StateOf(reconciled, inUse)
	kube.SetConditions(&status.Conditions, o.Tag.Generation, now, reconciled, inUse)
	return status
}

func (r *reconciler) recordEvent(o Observed, step passage.Step) {
	to := o.pointsTo()
	switch {
	case step.Action == installer.ActionUninstall || step.Action == installer.ActionRestore:
		r.RecordStep(o.Tag, step)
	case o.Tag.Status.IstioRevision == "" || o.Tag.Status.IstioRevision == to.Name:
		r.Recorder.Eventf(o.Tag, to, corev1.EventTypeNormal, "TagPoints", string(ActionPoint), "points to IstioRevision %s", to.Name)
	default:
		r.Recorder.Eventf(o.Tag, to, corev1.EventTypeNormal, "TagMoved", string(ActionPoint),
			"moved from IstioRevision %s to %s", o.Tag.Status.IstioRevision, to.Name)
	}
}
