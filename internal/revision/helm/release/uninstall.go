package release

import (
	"context"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// Uninstall deletes a release and its objects, except those to keep. A release that does not exist is no error.
//
// Helm's own uninstall deletes the objects of the last record, skips those it cannot read, and deletes the records anyway.
// This one also deletes objects of interrupted attempts, and deletes the records last.
func (m *Manager) Uninstall(ctx context.Context, namespace, name string) error {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	done, err := m.lock(ctx, key)
	if err != nil {
		return err
	}
	defer done()
	m.recent.remove(key)
	if err := m.uninstall(ctx, key); err != nil {
		return fmt.Errorf("uninstall release %s: %w", key, err)
	}
	m.Forget(namespace, name)
	m.recent.add(State{Namespace: namespace, Name: name}, time.Now())
	return nil
}

func (m *Manager) uninstall(ctx context.Context, key types.NamespacedName) error {
	s, past, err := m.session(ctx, key)
	if err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	if len(past) > 0 {
		if err := s.loadObjects(past); err != nil {
			return err
		}
		if err := s.markUninstalling(past[len(past)-1]); err != nil {
			return err
		}
		objects = past.objects()
	} else if objects, err = m.orphanedObjects(ctx, key); err != nil || len(objects) == 0 {
		return err
	}
	count(opUninstall)
	for _, object := range removalOrder(objects) {
		if err := m.remove(ctx, object); err != nil {
			return err
		}
	}
	return s.deleteRecords(past)
}

// markUninstalling records that a release is being uninstalled.
func (s *session) markUninstalling(latest record) error {
	if latest.Info.Status == common.StatusUninstalling {
		return nil
	}
	latest.Info.Deleted = time.Now()
	latest.SetStatus(common.StatusUninstalling, "Deletion in progress")
	// Records go by themselves when their namespace does.
	if err := s.store.Update(latest.Release); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("mark record %d as uninstalling: %w", latest.Version, err)
	}
	return nil
}

// clusterScopedKinds are the kinds of charts' objects that are not deleted with the namespace of their release.
var clusterScopedKinds = []schema.GroupVersionKind{
	admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
	admissionv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
	admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
	admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
}

// orphanedObjects are annotated with a release without a record, because its namespace was deleted. A webhook among them
// would fail requests.
func (m *Manager) orphanedObjects(ctx context.Context, key types.NamespacedName) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, kind := range clusterScopedKinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		err := m.client.List(ctx, list, client.MatchingLabels{v1.LabelPassage: v1.PassageRevision, managedByLabel: managedByHelm})
		if meta.IsNoMatchError(err) {
			continue // an older cluster
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			if Of(&list.Items[i]) == key {
				object := &unstructured.Unstructured{}
				object.SetGroupVersionKind(kind)
				object.SetName(list.Items[i].Name)
				setOwnership(object, key, nil)
				found = append(found, object)
			}
		}
	}
	return found, nil
}
