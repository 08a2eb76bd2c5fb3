package adoption

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

// release deletes all Works of a binding that is going.
func (b *binder) release(ctx context.Context, binding *binding, works map[string]*workv1alpha1.Work) error {
	if len(works) > 0 {
		last, err := b.lastWill(ctx, binding)
		if err != nil {
			return err
		}
		return b.carryOut(ctx, last, works)
	}
	released := binding.copy()
	controllerutil.RemoveFinalizer(released.Object, FinalizerBinding)
	return client.IgnoreNotFound(b.client.Patch(ctx, released.Object, client.MergeFrom(binding.Object), client.FieldOwner(FieldOwner)))
}

// will is what becomes of objects whose binding goes: an annotation for their Works, and whether they stay.
type will struct {
	annotation string
	preserve   bool
}

// lastWill of a binding. One that somebody has deleted by hand, while its resource is there, takes nothing along: it is made
// again if a policy takes the resource, and otherwise all stays without marks.
func (b *binder) lastWill(ctx context.Context, binding *binding) (will, error) {
	preserve := ptr.Deref(binding.spec.PreserveResourcesOnDeletion, false)
	annotations := binding.GetAnnotations()
	if annotations[AnnotationUndo] == "true" {
		return will{AnnotationUndo, preserve}, nil
	}
	if annotations[AnnotationReleased] == "true" {
		return will{"", true}, nil
	}
	key := templateOf(binding)
	template := metadataOf(key.kind)
	err := b.templates.Get(ctx, key.ObjectKey, template)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return will{}, fmt.Errorf("find out whether %s %s is still there: %w", key.kind.Kind, key.ObjectKey, err)
	case err != nil || template.DeletionTimestamp != nil:
		return will{"", preserve}, nil
	case taken(binding):
		return will{AnnotationKeep, preserve}, nil
	}
	return will{"", true}, nil
}

// staysBehind tells whether an object stays in a cluster that its resource no longer goes to: if its policy says so now,
// whatever it said when the Work was written, or if it was another policy that took it there.
func staysBehind(binding *binding, work *workv1alpha1.Work) bool {
	return ptr.Deref(binding.spec.PreserveResourcesOnDeletion, false) || work.Annotations[AnnotationClaim] != claimOf(binding).String()
}

// carryOut deletes Works as their binding wills.
func (b *binder) carryOut(ctx context.Context, last will, works map[string]*workv1alpha1.Work) error {
	for _, cluster := range slices.Sorted(maps.Keys(works)) {
		work := works[cluster]
		if !work.DeletionTimestamp.IsZero() {
			continue
		}
		before := work.DeepCopy()
		if last.annotation != "" {
			work.Annotations = joined(work.Annotations, nil, map[string]string{last.annotation: "true"})
		}
		if last.preserve != ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) {
			work.Spec.PreserveResourcesOnDeletion = &last.preserve
		}
		patch := client.MergeFrom(before)
		if text, err := patch.Data(work); err != nil {
			return err
		} else if string(text) != "{}" {
			if err := b.client.Patch(ctx, work, patch, client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		if err := b.client.Delete(ctx, work); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
