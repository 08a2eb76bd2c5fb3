// Package kube has what every controller needs.
package kube

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ConflictRequeueDelay lets the caches see the write that caused a conflict.
const ConflictRequeueDelay = 100 * time.Millisecond

// ConflictBackoff is for commands, which are not requeued: it is longer than a controller writes the same object again and again.
var ConflictBackoff = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Jitter: 0.1, Steps: 12}

// RequeueOnConflict requeues after a conflict, which is no error: another client wrote first, or the cache lags behind.
type RequeueOnConflict[T comparable] struct{ reconcile.TypedReconciler[T] }

func (c RequeueOnConflict[T]) Reconcile(ctx context.Context, request T) (reconcile.Result, error) {
	result, err := c.TypedReconciler.Reconcile(ctx, request)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: ConflictRequeueDelay}, nil
	}
	return result, err
}
