package foreign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
func (g Generated) isTheirs(object metav1.Object, managers []string) bool {
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
	var errs []error
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := r.metadata.Resource(resource).List(ctx, options)
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("list %s: %w", resource.GroupResource(), err))
		}
		if err != nil {
			return errors.Join(errs...)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if !system.Generated.isTheirs(object, system.Managers) {
				continue
			}
			if err := r.claimObject(ctx, system, resource, object); err != nil {
				errs = append(errs, fmt.Errorf("take over %s %s/%s: %w", resource.Resource, object.Namespace, object.Name, err))
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return errors.Join(errs...)
		}
	}
}

func (r *Reporter) claimObject(ctx context.Context, system System, resource schema.GroupVersionResource, object *metav1.PartialObjectMetadata) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": object.ResourceVersion, "labels": map[string]any{system.Generated.Label: system.Generated.Ours},
	}})
	if err != nil {
		return err
	}
	_, err = r.metadata.Resource(resource).Namespace(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldOwner})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	r.log.Info("taken over what another controller has generated", "passage", system.Passage, "resource", resource.Resource, "namespace", object.Namespace, "name", object.Name)
	return nil
}
