package tag

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// ReleaseOf is the only release of a tag.
func (o Observed) ReleaseOf(passage.Step) installer.Release { return o.Release }

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
