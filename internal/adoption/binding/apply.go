package binding

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
)

// applyWorks carries out all steps, and returns the Works that stay. The error is of type workRefusals if no other has occurred.
func (r *reconciler) applyWorks(ctx context.Context, o Observed, d Decision) (map[string]*workv1alpha1.Work, error) {
	defer kube.Span(&ctx, kube.StageApply)()
	works := map[string]*workv1alpha1.Work{}
	var errs []error
	var refusals workRefusals
	for i := range d.Steps {
		step, work := &d.Steps[i], d.Steps[i].Work
		var err error
		switch step.Action {
		case model.ActionCreate:
			work, err = r.createWork(ctx, o.Binding, work)
		case model.ActionUpdate:
			err = r.client.Update(ctx, work, client.FieldOwner(model.FieldOwner))
		case model.ActionKeep:
			err = r.patchWork(ctx, o.Works[step.Object.Cluster], work)
		case model.ActionDelete:
			errs = append(errs, r.deleteWork(ctx, o.Works[step.Object.Cluster], work))
			continue
		}
		if kube.IsTooLarge(err) {
			err = workTooLarge(o.Binding, step.Object.Cluster, err)
		}
		if refused := (*workRefusedError)(nil); errors.As(err, &refused) {
			refusals = append(refusals, refused)
			err, work = nil, o.Works[step.Object.Cluster]
		}
		errs = append(errs, err)
		if work != nil {
			works[step.Object.Cluster] = work
		}
	}
	if err := errors.Join(errs...); err != nil || len(refusals) == 0 {
		return works, err
	}
	return works, refusals
}

// createWork creates a Work, or updates the one that the cache has not seen yet, or that was made for an earlier binding. That of a
// binding that exists is left alone.
func (r *reconciler) createWork(ctx context.Context, b *model.Binding, desired *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	work := desired.DeepCopy()
	err := r.client.Create(ctx, work, client.FieldOwner(model.FieldOwner))
	if !apierrors.IsAlreadyExists(err) {
		return work, err
	}
	have := &workv1alpha1.Work{}
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(desired), have); err != nil {
		return nil, err
	}
	if have.Labels[model.LabelBinding] != string(b.GetUID()) {
		owner, err := r.ownerOf(ctx, have)
		if err != nil {
			return nil, err
		}
		if owner != nil {
			return nil, workOwned(b, owner, have)
		}
	}
	if work := updatedWork(have, desired); work != nil {
		return work, r.client.Update(ctx, work, client.FieldOwner(model.FieldOwner))
	}
	return have, nil
}

// deleteWork deletes a Work once it says what becomes of its object.
func (r *reconciler) deleteWork(ctx context.Context, have, work *workv1alpha1.Work) error {
	if !have.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := r.patchWork(ctx, have, work); err != nil {
		return err
	}
	return client.IgnoreNotFound(r.client.Delete(ctx, have, client.Preconditions{UID: &have.UID}))
}

// patchWork writes what is new in a Work, if that exists. One that was created again since is not the one that was read.
func (r *reconciler) patchWork(ctx context.Context, have, work *workv1alpha1.Work) error {
	if text, err := client.MergeFrom(have).Data(work); err != nil || string(text) == "{}" {
		return err
	}
	patch := client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.client.Patch(ctx, work, patch, client.FieldOwner(model.FieldOwner)))
}

// removeFinalizer ends the deletion of a binding.
func (r *reconciler) removeFinalizer(ctx context.Context, b *model.Binding) error {
	return kube.RemoveFinalizer(ctx, r.client, b.Object, model.FinalizerBinding, model.FieldOwner)
}
