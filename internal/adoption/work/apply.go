package work

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
)

// applyStep carries out one step, in at most one write to the member, and returns the object as the member has it then.
func (r *reconciler) applyStep(ctx context.Context, m *member.Client, work *workv1alpha1.Work, object Object, step Step) (*unstructured.Unstructured, error) {
	defer kube.Span(&ctx, kube.StageApply)()
	live, desired := object.Live, step.Desired
	var err error
	switch step.Action {
	case model.ActionNone, model.ActionLeave, model.ActionWait:
		return live, nil
	case model.ActionCreate:
		err = createObject(ctx, m, desired)
	case model.ActionTakeOver:
		if err = r.backUpOriginal(ctx, m, work, object, desired); err == nil {
			err = m.API.Update(ctx, desired, client.FieldOwner(model.FieldOwner))
		}
	case model.ActionUpdate:
		if step.Reason.Code == model.ReasonDrifted {
			r.driftLimiter.Record(work.UID, r.now(), restoreWindow)
		}
		err = m.API.Update(ctx, desired, client.FieldOwner(model.FieldOwner))
	default:
		err = releaseObject(ctx, m, step, live)
	}
	if err != nil {
		return nil, err
	}
	member.Writes.WithLabelValues(m.Name, string(step.Action)).Inc()
	kube.LogStep(ctx, model.Passage, step.Step)
	return desired, nil
}

// backUpOriginal saves an object that is about to be taken over, if that changes anything that a user sees.
func (r *reconciler) backUpOriginal(ctx context.Context, m *member.Client, work *workv1alpha1.Work, object Object, desired *unstructured.Unstructured) error {
	if EqualForUsers(object.Live, desired) {
		return nil
	}
	// Defaults of the two API servers may differ: only the member knows what would become of the object.
	dryRun := desired.DeepCopy()
	if err := m.API.Update(ctx, dryRun, client.FieldOwner(model.FieldOwner), client.DryRunAll); err != nil {
		return err
	}
	if EqualForUsers(object.Live, dryRun) {
		return nil
	}
	return r.originals.save(ctx, work, object.Ordinal, object.Live)
}

// createObject creates an object, and its namespace if that is missing.
func createObject(ctx context.Context, m *member.Client, object *unstructured.Unstructured) error {
	err := m.API.Create(ctx, object, client.FieldOwner(model.FieldOwner))
	if !apierrors.IsNotFound(err) || object.GetNamespace() == "" {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.GetNamespace()}}
	if err := m.API.Create(ctx, namespace, client.FieldOwner(model.FieldOwner)); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create namespace %s: %w", namespace.Name, err)
	}
	return m.API.Create(ctx, object, client.FieldOwner(model.FieldOwner))
}

// releaseObject deletes an object whose Work is being deleted, restores it, or removes the labels of the hub.
func releaseObject(ctx context.Context, m *member.Client, step Step, live *unstructured.Unstructured) error {
	err := func() error {
		if step.Action == model.ActionDelete {
			uid, version := live.GetUID(), live.GetResourceVersion()
			return m.API.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid, ResourceVersion: &version})
		}
		if step.Desired != nil {
			err := m.API.Update(ctx, step.Desired, client.FieldOwner(model.FieldOwner))
			if !apierrors.IsInvalid(err) {
				return err
			}
			ctrl.LoggerFrom(ctx).Error(err, "restore the original: the object stays as it is", "cluster", m.Name, "object", step.Object.String())
		}
		before := live.DeepCopy()
		live.SetLabels(model.MergeKeys(live.GetLabels(), model.OwnershipLabels))
		return m.API.Patch(ctx, live, client.MergeFrom(before), client.FieldOwner(model.FieldOwner))
	}()
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("%s %s %s in cluster %s: %w", step.Action, live.GetKind(), model.NameOf(live), m.Name, err)
	}
	return nil
}

// removeFinalizer ends the deletion of a Work.
func (r *reconciler) removeFinalizer(ctx context.Context, work *workv1alpha1.Work) error {
	r.comparisons.forget(work.UID)
	r.driftLimiter.Forget(func(uid types.UID) bool { return uid == work.UID })
	return kube.RemoveFinalizer(ctx, r.client, work, model.FinalizerExecution, model.FieldOwner)
}
