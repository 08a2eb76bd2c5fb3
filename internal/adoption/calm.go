package adoption

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// calmDown is how long it takes a cache to hear of who was faster.
const calmDown = 100 * time.Millisecond

// calm makes no fuss when somebody else was faster, or a cache late.
type calm[T comparable] struct{ reconcile.TypedReconciler[T] }

func (c calm[T]) Reconcile(ctx context.Context, request T) (reconcile.Result, error) {
	result, err := c.TypedReconciler.Reconcile(ctx, request)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: calmDown}, nil
	}
	return result, err
}
