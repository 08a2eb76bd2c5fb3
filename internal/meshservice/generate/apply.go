package generate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// applyMeshService makes a MeshService what it should be, unless somebody else's has its name. What is written carries the
// version that was looked at: whoever was faster is not overwritten.
func (r *reconciler) applyMeshService(ctx context.Context, want *kumav1alpha1.MeshService) (kept bool, err error) {
	desired.RecordLabels(want)
	var there kumav1alpha1.MeshService
	err = r.client.Get(ctx, client.ObjectKeyFromObject(want), &there)
	switch {
	case apierrors.IsNotFound(err):
		return true, r.create(ctx, want)
	case err != nil:
		return true, err
	case !desired.IsGenerated(&there, r.ZoneInfo) || !sameOwner(&there, want):
		return false, nil
	}
	now := there.DeepCopy()
	desired.MergeMetadata(now, want)
	delete(now.Annotations, annotationUnused)
	now.Spec.Selector, now.Spec.Ports = want.Spec.Selector, want.Spec.Ports
	return true, r.update(ctx, &there, now)
}

// sameOwner says whether two were made for the same: an owner of that name, or the service of the same name in the same mesh.
func sameOwner(a, b *kumav1alpha1.MeshService) bool {
	one, other := metav1.GetControllerOf(a), metav1.GetControllerOf(b)
	if one == nil || other == nil {
		return one == other && desired.MeshOf(a) == desired.MeshOf(b) &&
			a.Labels[kumav1alpha1.LabelDisplayName] == b.Labels[kumav1alpha1.LabelDisplayName]
	}
	return one.Kind == other.Kind && one.Name == other.Name
}

func (r *reconciler) create(ctx context.Context, object client.Object) error {
	err := r.client.Create(ctx, object, client.FieldOwner(FieldOwner))
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// Nothing is made any more where everything goes.
		return nil
	case err != nil:
		return fmt.Errorf("create %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// update writes only what has changed.
func (r *reconciler) update(ctx context.Context, there, now client.Object) error {
	if desired.Equal(there, now) {
		return nil
	}
	if err := r.client.Update(ctx, now, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("update %T %s: %w", now, client.ObjectKeyFromObject(now), err)
	}
	return nil
}

// optimisticLock is a patch of what was looked at, and of nothing newer: it holds lists as a whole, in which others write too.
func optimisticLock(there client.Object) client.Patch {
	return client.MergeFromWithOptions(there, client.MergeFromWithOptimisticLock{})
}

// delete deletes what was looked at, and nothing newer.
func (r *reconciler) delete(ctx context.Context, object client.Object) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	err := r.client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// conflictRequeueDelay is how long it takes a cache to hear of who was faster.
const conflictRequeueDelay = 100 * time.Millisecond

// requeueOnConflict makes no fuss when somebody else was faster, or a cache late.
type requeueOnConflict struct{ reconcile.Reconciler }

func (c requeueOnConflict) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := c.Reconciler.Reconcile(ctx, request)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	}
	return result, err
}
