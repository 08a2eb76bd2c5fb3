package binding

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// deleteAll deletes all Works of a binding that is going.
func (b *reconciler) deleteAll(ctx context.Context, binding *model.Binding, works map[string]*workv1alpha1.Work) error {
	if len(works) > 0 {
		last, err := b.deletionPolicyOf(ctx, binding)
		if err != nil {
			return err
		}
		return b.deleteWorks(ctx, last, works)
	}
	released := binding.Copy()
	controllerutil.RemoveFinalizer(released.Object, model.FinalizerBinding)
	return client.IgnoreNotFound(b.client.Patch(ctx, released.Object, client.MergeFrom(binding.Object), client.FieldOwner(model.FieldOwner)))
}

// deletionPolicy is what becomes of objects whose binding goes: an annotation for their Works, and whether they stay.
type deletionPolicy struct {
	annotation string
	preserve   bool
}

// deletionPolicyOf of a binding. One that somebody has deleted by hand, while its resource is there, takes nothing along: it is made
// again if a policy takes the resource, and otherwise all stays without marks.
func (b *reconciler) deletionPolicyOf(ctx context.Context, binding *model.Binding) (deletionPolicy, error) {
	preserve := ptr.Deref(binding.Spec.PreserveResourcesOnDeletion, false)
	annotations := binding.GetAnnotations()
	if annotations[model.AnnotationUndo] == "true" {
		return deletionPolicy{model.AnnotationUndo, preserve}, nil
	}
	if annotations[model.AnnotationReleased] == "true" {
		return deletionPolicy{"", true}, nil
	}
	key := model.TemplateKeyOf(binding)
	template := model.NewMetadata(key.Kind)
	err := b.templates.Get(ctx, key.ObjectKey, template)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return deletionPolicy{}, fmt.Errorf("find out whether %s %s is still there: %w", key.Kind.Kind, key.ObjectKey, err)
	case err != nil || template.DeletionTimestamp != nil:
		return deletionPolicy{"", preserve}, nil
	case model.IsTaken(binding):
		return deletionPolicy{model.AnnotationKeep, preserve}, nil
	}
	return deletionPolicy{"", true}, nil
}

// IsPreserved tells whether an object stays in a cluster that its resource no longer goes to: if its policy says so now,
// whatever it said when the Work was written, or if it was another policy that took it there.
func IsPreserved(binding *model.Binding, work *workv1alpha1.Work) bool {
	return ptr.Deref(binding.Spec.PreserveResourcesOnDeletion, false) || work.Annotations[model.AnnotationClaim] != model.ClaimOf(binding).String()
}

// deleteWorks deletes Works as their binding wills.
func (b *reconciler) deleteWorks(ctx context.Context, last deletionPolicy, works map[string]*workv1alpha1.Work) error {
	for _, cluster := range slices.Sorted(maps.Keys(works)) {
		work := works[cluster]
		if !work.DeletionTimestamp.IsZero() {
			continue
		}
		before := work.DeepCopy()
		if last.annotation != "" {
			work.Annotations = model.MergeKeys(work.Annotations, nil, map[string]string{last.annotation: "true"})
		}
		if last.preserve != ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) {
			work.Spec.PreserveResourcesOnDeletion = &last.preserve
		}
		patch := client.MergeFrom(before)
		if text, err := patch.Data(work); err != nil {
			return err
		} else if string(text) != "{}" {
			if err := b.client.Patch(ctx, work, patch, client.FieldOwner(model.FieldOwner)); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		if err := b.client.Delete(ctx, work); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
