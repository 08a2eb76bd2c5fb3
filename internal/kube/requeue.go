// Package kube has what every controller needs.
package kube

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// conflictRequeueDelay is how long it takes a cache to hear of who was faster.
const conflictRequeueDelay = 100 * time.Millisecond

// RequeueOnConflict makes no fuss when somebody else was faster, or a cache late.
type RequeueOnConflict[T comparable] struct{ reconcile.TypedReconciler[T] }

func (c RequeueOnConflict[T]) Reconcile(ctx context.Context, request T) (reconcile.Result, error) {
	result, err := c.TypedReconciler.Reconcile(ctx, request)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	}
	return result, err
}
