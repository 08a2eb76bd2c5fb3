package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// ToUnstructured is the apply configuration of an object, without its status.
func ToUnstructured(kind schema.GroupVersionKind, object metav1.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("describe %s %s: %w", kind.Kind, object.GetName(), err)
	}
	delete(content, "status")
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// SetOwner makes a Materialize the owner of an object, and annotates a digest of the configuration, so that fields that are
// removed later are noticed.
func SetOwner(m *v1alpha2.Materialize, object *unstructured.Unstructured) error {
	object.SetNamespace(m.Namespace)
	// Without blockOwnerDeletion, which would need a permission on the owner's finalizers in some clusters.
	controller := true
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1alpha2.GroupVersion.String(), Kind: v1alpha2.MaterializeKind,
		Name: m.Name, UID: m.UID, Controller: &controller,
	}})
	text, err := json.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("describe %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	digest := sha256.Sum256(text)
	applied := labels.Set{v1alpha2.AnnotationApplied: hex.EncodeToString(digest[:8])}
	object.SetAnnotations(labels.Merge(object.GetAnnotations(), applied))
	return nil
}

// Identity of an object, as plans name it. The API server may serve several versions of a kind; one is meant.
func Identity(object *unstructured.Unstructured) passage.Object {
	return passage.Object{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

func Subject(m *v1alpha2.Materialize) passage.Object {
	return passage.Object{
		APIVersion: v1alpha2.GroupVersion.String(), Kind: v1alpha2.MaterializeKind, Namespace: m.Namespace, Name: m.Name,
	}
}
