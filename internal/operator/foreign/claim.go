package foreign

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Generated tells objects that a system generates from others from those that users write: Fairlead keeps what it generates, and
// leaves the rest alone.
type Generated struct {
	// Owners are the kinds that objects are generated from.
	Owners []string
	// Label says who generates an object: without it, or with the value Theirs, the system does, and with Ours, Fairlead.
	Label, Theirs, Ours string
}

// isTheirs tells whether the system has generated an object.
func (g Generated) isTheirs(object *unstructured.Unstructured, managers []string) bool {
	owner := metav1.GetControllerOf(object)
	if by := object.GetLabels()[g.Label]; owner == nil || !slices.Contains(g.Owners, owner.Kind) || by != "" && by != g.Theirs {
		return false
	}
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "" && slices.Contains(managers, entry.Manager)
	})
}

// ClaimGenerated has Fairlead keep what a system has generated whose passage is taken over. Otherwise it would stay as it is, while
// what it was generated from changes.
func (r *Reporter) ClaimGenerated(ctx context.Context, system System) error {
	var errs []error
	for _, kind := range system.Kinds {
		if system.Generated == nil || kind.Starts {
			continue
		}
		for _, version := range kind.Versions {
			errs = append(errs, r.claimGenerated(ctx, system, kind.WithVersion(version)))
		}
	}
	return errors.Join(errs...)
}

func (r *Reporter) claimGenerated(ctx context.Context, system System, resource schema.GroupVersionResource) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := r.objects.Resource(resource).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", resource.GroupResource(), err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if !system.Generated.isTheirs(object, system.Managers) {
				continue
			}
			labels := object.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[system.Generated.Label] = system.Generated.Ours
			object.SetLabels(labels)
			_, err := r.objects.Resource(resource).Namespace(object.GetNamespace()).Update(ctx, object, metav1.UpdateOptions{FieldManager: FieldOwner})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("take over %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
			}
			r.log.Info("taken over what another controller has generated", "passage", system.Passage, "kind", object.GetKind(), "namespace", object.GetNamespace(), "name", object.GetName())
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}
