package kube

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// RemoveFinalizer removes a finalizer of an object as it was read. A cache may still have an object that is gone: one that was
// created again under its name keeps the finalizer, and the answer is a conflict.
func RemoveFinalizer(ctx context.Context, writer client.Writer, object client.Object, finalizer, owner string) error {
	released := object.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(released, finalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(writer.Patch(ctx, released, patch, client.FieldOwner(owner)))
}
