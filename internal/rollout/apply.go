package rollout

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/environmentd"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// attempt is a step that was executed, successfully or not.
type attempt struct {
	object passage.Object
	action passage.Action
}

// reconcileSteps observes, plans and executes the steps that need no waiting, until none is left, and returns the last plan.
func (r *reconciler) reconcileSteps(ctx context.Context, key client.ObjectKey) (Observed, decision, applyErrors) {
	log := ctrl.LoggerFrom(ctx)
	tried := map[attempt]bool{}
	var failed applyErrors
	for {
		var o Observed
		if o, failed.blocking = r.observe(ctx, key); failed.blocking != nil {
			return o, decision{}, failed
		}
		d := r.plan(ctx, o)
		if d.Hold != nil {
			return o, d, applyErrors{}
		}
		start := startable(markAttempted(d.Steps, tried))
		if len(start) == 0 {
			failed.blocking = d.specErr
			if d.sharedSpecErr != nil {
				failed.tolerated = append(failed.tolerated, d.sharedSpecErr)
			}
			return o, d, failed
		}
		if failed.blocking = r.freshness.check(ctx, o.Materialize); failed.blocking != nil {
			return o, d, failed
		}
		for _, step := range start {
			tried[attempt{step.Object, step.Action}] = true
			err := r.execute(ctx, o, d, step)
			switch {
			case err == nil:
			case !isTolerated(step.Action), apierrors.IsConflict(err):
				failed.blocking = fmt.Errorf("%s %s: %w", step.Action, step.Object, err)
				return o, d, failed
			default:
				log.Info("step failed, retrying; the rollout continues without it", "action", step.Action, "object", step.Object.String(), "error", err.Error())
				if !isReportable(err) {
					err = transient{err}
				}
				failed.tolerated = append(failed.tolerated, fmt.Errorf("%s %s: %w", step.Action, step.Object, err))
				continue
			}
			kube.LogStep(ctx, Name, step)
		}
	}
}

func (r *reconciler) plan(ctx context.Context, o Observed) decision {
	defer kube.Span(&ctx, kube.StagePlan)()
	return decide(o, r.now())
}

// markAttempted marks attempted steps as running: each is tried once per reconcile.
func markAttempted(steps []passage.Step, tried map[attempt]bool) []passage.Step {
	left := make([]passage.Step, len(steps))
	for i, step := range steps {
		if step.State == passage.Pending && tried[attempt{step.Object, step.Action}] {
			step.State = passage.Running
		}
		left[i] = step
	}
	return left
}

func (r *reconciler) execute(ctx context.Context, o Observed, d decision, step passage.Step) error {
	defer kube.Span(&ctx, kube.StageApply)()
	next := o.Next().address(o.Materialize)
	switch step.Action {
	case ActionApplyShared, ActionApply, ActionSwitch:
		return r.apply(ctx, d.desired[step.Object])
	case ActionRemove, ActionDeleteShared:
		return r.remove(ctx, o, step.Object)
	case ActionSkipCatchup:
		return asEnvironmentdError(r.leaders.SkipCatchup(ctx, next))
	case ActionPromote:
		return asEnvironmentdError(r.leaders.Promote(ctx, next))
	case ActionCommit:
		if o.Forced() {
			// environmentd refuses if there is nothing to skip.
			if err := r.leaders.SkipCatchup(ctx, next); err != nil && !errors.As(err, new(environmentd.Refusal)) {
				return asEnvironmentdError(err)
			}
		}
	}
	return r.write(ctx, o, statusAfter(o, step.Action, r.newID, r.now()))
}

func (r *reconciler) apply(ctx context.Context, want *unstructured.Unstructured) error {
	if want.GroupVersionKind() == objects.KindCertificate {
		if err := r.watchCertificates(ctx); meta.IsNoMatchError(err) {
			return specError{fmt.Errorf("the spec requires Certificate %s, and cert-manager is not installed: install cert-manager, "+
				"or remove internalCertificateSpec, balancerdExternalCertificateSpec and consoleExternalCertificateSpec", want.GetName())}
		} else if err != nil {
			return err
		}
	}
	err := r.serverSideApply(ctx, want)
	if want.GroupVersionKind() != objects.KindDeployment || !apierrors.IsInvalid(err) {
		return err
	}
	// Another operator may have created the Deployment with another selector, which is immutable.
	have := newUnstructured(objects.KindDeployment)
	if r.live.Get(ctx, client.ObjectKeyFromObject(want), have) != nil {
		return err
	}
	if inherited := objects.KeepSelector(want, have); inherited != want {
		return r.serverSideApply(ctx, inherited)
	}
	return err
}

func (r *reconciler) serverSideApply(ctx context.Context, want *unstructured.Unstructured) error {
	writer := r.objects
	if want.GetLabels()[v1alpha2.LabelResourceID] == "" {
		// The cache does not hold unlabelled objects.
		writer = r.live
	}
	return writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(want.DeepCopy()),
		client.FieldOwner(v1alpha2.FieldOwner), client.ForceOwnership)
}

// remove deletes an object as it was observed. A StatefulSet is deleted after its pods, so that its absence proves theirs.
func (r *reconciler) remove(ctx context.Context, o Observed, key passage.Object) error {
	object, writer := o.find(key), client.Writer(r.objects)
	if unlabelled := o.findUnlabelled(key); unlabelled != nil {
		// The cache does not hold unlabelled objects.
		object, writer = unlabelled, r.live
	}
	if object == nil {
		return nil
	}
	propagation := metav1.DeletePropagationBackground
	if key.Kind == objects.KindStatefulSet.Kind {
		propagation = metav1.DeletePropagationForeground
	}
	uid := object.GetUID()
	return client.IgnoreNotFound(writer.Delete(ctx, object, client.PropagationPolicy(propagation), client.Preconditions{UID: &uid}))
}

// find returns an object of the environment, nil if there is none of that name.
func (o Observed) find(key passage.Object) *unstructured.Unstructured {
	if object := o.SharedObjects[key]; object != nil {
		return object
	}
	for _, g := range o.Generations {
		if object := g.find(key); object != nil {
			return object
		}
	}
	return nil
}

// findUnlabelled returns an unlabelled object, nil if there is none of that name.
func (o Observed) findUnlabelled(key passage.Object) *unstructured.Unstructured {
	for _, g := range o.Generations {
		for _, object := range g.Unlabelled {
			if objects.Identity(object) == key {
				return object
			}
		}
	}
	return nil
}
