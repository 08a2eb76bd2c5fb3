package foreign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Generated tells objects that a system generates from others from those that users write: Fairlead keeps what it generates, and
// leaves the rest alone.
type Generated struct {
	// Label says who generates an object: the system does without it or with SystemValue, and Fairlead with FairleadValue.
	Label, SystemValue, FairleadValue string
}

// isGenerated tells whether the system has generated an object of a kind.
func (g Generated) isGenerated(object metav1.Object, kind Kind, managers []string) bool {
	if by := object.GetLabels()[g.Label]; kind.generatedFrom(object) < 0 || by != "" && by != g.SystemValue {
		return false
	}
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "" && slices.Contains(managers, entry.Manager)
	})
}

// generatedFrom is which owner reference is to what an object was generated from, and -1 if none is, or if an owner of another kind
// controls the object.
func (k Kind) generatedFrom(object metav1.Object) int {
	owners := object.GetOwnerReferences()
	isSource := func(owner metav1.OwnerReference) bool {
		return k.GeneratedFrom != "" && owner.Kind == k.GeneratedFrom && owner.APIVersion == corev1.SchemeGroupVersion.String()
	}
	if controls := slices.IndexFunc(owners, func(owner metav1.OwnerReference) bool { return ptr.Deref(owner.Controller, false) }); controls >= 0 {
		if !isSource(owners[controls]) {
			return -1
		}
		return controls
	}
	return slices.IndexFunc(owners, isSource)
}

// ClaimGenerated has Fairlead keep what a system has generated whose passage is taken over. Otherwise it would stay as it is, while
// what it was generated from changes.
func (r *Reporter) ClaimGenerated(ctx context.Context, system System) error {
	var errs []error
	for _, kind := range system.Kinds {
		if system.Generated == nil || kind.GeneratedFrom == "" {
			continue
		}
		for _, version := range kind.Versions {
			errs = append(errs, r.claimGenerated(ctx, system, kind, kind.WithVersion(version)))
		}
	}
	return errors.Join(errs...)
}

func (r *Reporter) claimGenerated(ctx context.Context, system System, kind Kind, resource schema.GroupVersionResource) error {
	var failed failures
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := r.metadata.Resource(resource).List(ctx, options)
		if err != nil && !apierrors.IsNotFound(err) {
			failed.add(fmt.Errorf("list %s: %w", resource.GroupResource(), err))
		}
		if err != nil {
			return failed.err()
		}
		for i := range list.Items {
			object := &list.Items[i]
			if !system.Generated.isGenerated(object, kind, system.Managers) {
				continue
			}
			if err := r.claimObject(ctx, system, kind, resource, object); err != nil {
				failed.add(fmt.Errorf("take over %s %s/%s: %w", resource.Resource, object.Namespace, object.Name, err))
			}
			if failed.isUnavailable() {
				return failed.err()
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return failed.err()
		}
	}
}

// claimObject says on an object that Fairlead generates it, and from what: the controllers of Fairlead go by the owner that controls
// an object, and others may have set an owner that does not.
func (r *Reporter) claimObject(ctx context.Context, system System, kind Kind, resource schema.GroupVersionResource, object *metav1.PartialObjectMetadata) error {
	changes := map[string]any{"resourceVersion": object.ResourceVersion, "labels": map[string]any{system.Generated.Label: system.Generated.FairleadValue}}
	if metav1.GetControllerOf(object) == nil {
		owners := slices.Clone(object.OwnerReferences)
		owners[kind.generatedFrom(object)].Controller = ptr.To(true)
		changes["ownerReferences"] = owners
	}
	patch, err := json.Marshal(map[string]any{"metadata": changes})
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
