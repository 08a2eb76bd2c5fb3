package upkeep

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// Protect keeps an owner of a release until what is installed for it is gone.
func Protect(ctx context.Context, c client.Client, owner client.Object) error {
	return patchFinalizers(ctx, c, owner, controllerutil.AddFinalizer)
}

// LetGo removes what keeps the owner of a release.
func LetGo(ctx context.Context, c client.Client, owner client.Object) error {
	return client.IgnoreNotFound(patchFinalizers(ctx, c, owner, controllerutil.RemoveFinalizer))
}

func patchFinalizers(ctx context.Context, c client.Client, owner client.Object, change func(client.Object, string) bool) error {
	before := owner.DeepCopyObject().(client.Object)
	if !change(owner, v1.FinalizerUninstall) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, owner, patch, client.FieldOwner(v1.FieldOwner)); err != nil {
		return fmt.Errorf("write the finalizers of %s: %w", owner.GetName(), err)
	}
	return nil
}

// Deleting passes on what is on its way out.
var Deleting = predicate.NewPredicateFuncs(func(object client.Object) bool {
	return !object.GetDeletionTimestamp().IsZero()
})
