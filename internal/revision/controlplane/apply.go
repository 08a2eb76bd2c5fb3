package controlplane

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
		r.recorder.Eventf(o.Revision, installer.Related(step.Object), corev1.EventTypeNormal, eventReasons[step.Action], string(step.Action),
			"%s %s: %s", step.Action, step.Object, step.Reason.Message)
	}
	return errors.Join(left...)
}

var eventReasons = map[passage.Action]string{
	installer.ActionInstall:   "Installed",
	installer.ActionUpgrade:   "Upgraded",
	installer.ActionRestore:   "Restored",
	installer.ActionUninstall: "Uninstalled",
}

func (r *reconciler) applyStep(ctx context.Context, o Observed, step passage.Step) error {
	if step.Action == installer.ActionUninstall {
		return r.releases.Uninstall(ctx, step.Object.Namespace, step.Object.Name)
	}
	if err := installer.AddFinalizer(ctx, r.client, o.Revision); err != nil {
		return err
	}
	for _, shared := range []installer.Release{o.Base, o.Validator} {
		if isStepOf(shared, step) {
			return r.releases.Apply(ctx, shared, step)
		}
	}
	return r.releases.Apply(ctx, o.Istiod, step)
}

// isStepOf tells whether a step was made for a release.
func isStepOf(rel installer.Release, step passage.Step) bool {
	for _, s := range installer.Steps(rel, false) {
		if s.Object == step.Object {
			return true
		}
	}
	return false
}
