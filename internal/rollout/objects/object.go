package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// ToUnstructured is the apply configuration of an object, without its status.
func ToUnstructured(kind schema.GroupVersionKind, object metav1.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: toMap(object)}
	delete(u.Object, "status")
	u.SetGroupVersionKind(kind)
	return u
}

// toMap has no error: all values of the types of this package can be written as JSON.
func toMap(value any) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	utilruntime.Must(err)
	return content
}

func toJSON(value any) []byte {
	text, err := json.Marshal(value)
	utilruntime.Must(err)
	return text
}

// SetOwner makes a Materialize the owner of an object, and annotates a digest of the configuration, so that fields that are
// removed later are noticed. It returns the object.
func SetOwner(m *v1alpha2.Materialize, object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetNamespace(m.Namespace)
	// Without blockOwnerDeletion, which would need a permission on the owner's finalizers in some clusters.
	controller := true
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1alpha2.GroupVersion.String(), Kind: v1alpha2.MaterializeKind,
		Name: m.Name, UID: m.UID, Controller: &controller,
	}})
	digest := sha256.Sum256(toJSON(object.Object))
	applied := labels.Set{v1alpha2.AnnotationApplied: hex.EncodeToString(digest[:8])}
	object.SetAnnotations(labels.Merge(object.GetAnnotations(), applied))
	return object
}

// Identity of an object, as plans name it. The API server may serve several versions of a kind; one is meant.
func Identity(object *unstructured.Unstructured) passage.Object {
	return passage.Object{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

// IdentityOf is the identity of an object of this kind and name, in the namespace of a Materialize.
func IdentityOf(m *v1alpha2.Materialize, kind schema.GroupVersionKind, name string) passage.Object {
	return passage.Object{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: m.Namespace, Name: name}
}
