package controlplane

import (
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// ReleaseOf is the release that a step was planned for: a shared one, or that of the control plane.
func (o Observed) ReleaseOf(step passage.Step) installer.Release {
	for _, shared := range []installer.Release{o.Base, o.Validator} {
		for _, s := range installer.Steps(shared, false) {
			if s.Object == step.Object {
				return shared
			}
		}
	}
	return o.Istiod
}

func (r *reconciler) recordEvent(o Observed, step passage.Step) { r.RecordStep(o.Revision, step) }
