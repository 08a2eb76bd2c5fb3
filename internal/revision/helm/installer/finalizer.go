package installer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// patchFinalizers adds or removes the finalizer that keeps the owner of a release until the release is uninstalled.
func (t Tools) patchFinalizers(ctx context.Context, owner client.Object, change func(client.Object, string) bool) error {
	before := owner.DeepCopyObject().(client.Object)
	if !change(owner, v1.FinalizerUninstall) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := t.Client.Patch(ctx, owner, patch, client.FieldOwner(v1.FieldOwner)); err != nil {
		return fmt.Errorf("write the finalizers of %s: %w", owner.GetName(), err)
	}
	return nil
}

// RemainingFinalizers is set for a resource that is uninstalled and waits for finalizers of other controllers.
func RemainingFinalizers(owner metav1.Object) *passage.Reason {
	finalizers := owner.GetFinalizers()
	if owner.GetDeletionTimestamp().IsZero() || len(finalizers) == 0 || slices.Contains(finalizers, v1.FinalizerUninstall) {
		return nil
	}
	return passage.Hold(v1.ReasonBeingDeleted, "uninstalled; waiting for finalizers of other controllers: %s",
		strings.Join(finalizers, ", "))
}

// Deleting matches resources that are being deleted.
var Deleting = predicate.NewPredicateFuncs(func(object client.Object) bool {
	return !object.GetDeletionTimestamp().IsZero()
})
