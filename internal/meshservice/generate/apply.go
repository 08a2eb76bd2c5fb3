package generate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// applyMeshService creates or updates a MeshService, unless an unmanaged one has its name. The update carries the observed
// resourceVersion.
func (r *reconciler) applyMeshService(ctx context.Context, want *kumav1alpha1.MeshService) (kept bool, err error) {
	desired.RecordLabels(want)
	var there kumav1alpha1.MeshService
	err = r.client.Get(ctx, client.ObjectKeyFromObject(want), &there)
	switch {
	case apierrors.IsNotFound(err):
		return true, r.create(ctx, want)
	case err != nil:
		return true, err
	case !desired.IsGenerated(&there, r.ZoneInfo) || !sameOwner(&there, want):
		return false, nil
	}
	now := there.DeepCopy()
	desired.MergeMetadata(now, want)
	delete(now.Annotations, annotationUnused)
	now.Spec.Selector, now.Spec.Ports = want.Spec.Selector, want.Spec.Ports
	return true, r.update(ctx, &there, now)
}

func (r *reconciler) create(ctx context.Context, object client.Object) error {
	err := r.client.Create(ctx, object, client.FieldOwner(FieldOwner))
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The namespace is terminating.
		return nil
	case err != nil:
		return fmt.Errorf("create %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// update updates an object if it differs.
func (r *reconciler) update(ctx context.Context, there, now client.Object) error {
	if desired.Equal(there, now) {
		return nil
	}
	if err := r.client.Update(ctx, now, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("update %T %s: %w", now, client.ObjectKeyFromObject(now), err)
	}
	return nil
}

// delete deletes the observed version of an object, unless it was only taken over.
func (r *reconciler) delete(ctx context.Context, object client.Object) error {
	if !desired.IsApplied(object) {
		return nil
	}
	uid, version := object.GetUID(), object.GetResourceVersion()
	err := r.client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// applyVIPs writes the ConfigMaps of VIPs that differ, from the last to the first: see desired.TagVIPs.Shards.
func (r *reconciler) applyVIPs(ctx context.Context, mesh *kumav1alpha1.Mesh, there []*corev1.ConfigMap, shards []desired.TagVIPs) error {
	for i, tags := range slices.Backward(shards) {
		record := &corev1.ConfigMap{}
		if i < len(there) {
			record = there[i]
		}
		if err := r.applyShard(ctx, mesh, record, desired.VIPShard(mesh.Name, i), tags); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) applyShard(ctx context.Context, mesh *kumav1alpha1.Mesh, there *corev1.ConfigMap, name string, tags desired.TagVIPs) error {
	now := there.DeepCopy()
	now.Namespace, now.Name, now.Data, now.BinaryData = r.SystemNamespace, name, tags.VIPs, nil
	metav1.SetMetaDataLabel(&now.ObjectMeta, kumav1alpha1.LabelMesh, mesh.Name)
	metav1.SetMetaDataLabel(&now.ObjectMeta, kumav1alpha1.LabelManagedBy, kumav1alpha1.ManagedBy)
	now.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: kumav1alpha1.GroupVersion.String(), Kind: kumav1alpha1.MeshKind, Name: mesh.Name, UID: mesh.UID,
		Controller: ptr.To(true),
	}}
	// `fairlead plan` reads these annotations.
	metav1.SetMetaDataAnnotation(&now.ObjectMeta, kumav1alpha1.AnnotationZone, r.Zone)
	metav1.SetMetaDataAnnotation(&now.ObjectMeta, kumav1alpha1.AnnotationEnvironment, r.Environment)
	metav1.SetMetaDataAnnotation(&now.ObjectMeta, kumav1alpha1.AnnotationServiceCIDR, r.Ranges.Services.String())
	delete(now.Annotations, annotationGone)
	if len(tags.UnservedSince) > 0 {
		text, err := json.Marshal(tags.UnservedSince)
		if err != nil {
			return err
		}
		now.Annotations[annotationGone] = string(text)
	}
	if there.UID != "" {
		if desired.Equal(there, now) {
			return nil
		}
		return r.records.Update(ctx, now, client.FieldOwner(FieldOwner))
	}
	return r.records.Create(ctx, now, client.FieldOwner(FieldOwner))
}
