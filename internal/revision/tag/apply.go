package tag

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// apply applies steps of a plan, in order.
func (r *reconciler) apply(ctx context.Context, o Observed, steps []passage.Step) error {
	var left []error
	for _, step := range steps {
		if err := r.applyStep(ctx, o, step); err != nil {
			left = append(left, fmt.Errorf("%s %s: %w", step.Action, step.Object, err))
			if step.Action == installer.ActionRestore {
				continue // the others can be restored all the same
			}
			return errors.Join(left...)
		}
		ctrl.LoggerFrom(ctx).Info("applied a step", "action", step.Action, "object", step.Object.String(),
			"to", step.To, "reason", step.Reason.String())
		r.recordEvent(o, step)
	}
	return errors.Join(left...)
}

func (r *reconciler) recordEvent(o Observed, step passage.Step) {
	to := o.pointsTo()
	switch {
	case step.Action == installer.ActionUninstall:
		r.recorder.Eventf(o.Tag, installer.Related(step.Object), corev1.EventTypeNormal, "Uninstalled", string(step.Action),
			"%s %s: %s", step.Action, step.Object, step.Reason.Message)
	case step.Action == installer.ActionRestore:
		r.recorder.Eventf(o.Tag, installer.Related(step.Object), corev1.EventTypeNormal, "Restored", string(step.Action),
			"%s %s: %s", step.Action, step.Object, step.Reason.Message)
	case o.Tag.Status.IstioRevision == "" || o.Tag.Status.IstioRevision == to.Name:
		r.recorder.Eventf(o.Tag, to, corev1.EventTypeNormal, "TagPoints", string(ActionPoint), "points to IstioRevision %s", to.Name)
	default:
		r.recorder.Eventf(o.Tag, to, corev1.EventTypeNormal, "TagMoved", string(ActionPoint),
			"moved from IstioRevision %s to %s", o.Tag.Status.IstioRevision, to.Name)
	}
}

func (r *reconciler) applyStep(ctx context.Context, o Observed, step passage.Step) error {
	if step.Action == installer.ActionUninstall {
		return r.releases.Uninstall(ctx, step.Object.Namespace, step.Object.Name)
	}
	if err := installer.AddFinalizer(ctx, r.client, o.Tag); err != nil {
		return err
	}
	return r.releases.Apply(ctx, o.Release, step)
}
