package model

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FieldOwner is the field manager of all writes of adoption.
const FieldOwner = "fairlead/adoption"

// Labels of every managed object in a cluster. They are not annotations, because a change of those increments the generation of a
// Deployment.
const (
	// LabelManaged tells that a hub manages the object.
	LabelManaged = "karmada.io/managed"
	// LabelHub has the ID of the hub.
	LabelHub = "fairlead.dev/hub"
	// LabelWork has the ObjectID of the object, by which its Work is found.
	LabelWork = "fairlead.dev/work"
)

// OwnershipLabels are the keys of the labels of a managed object.
var OwnershipLabels = []string{LabelManaged, LabelHub, LabelWork}

// Identity is who manages an object.
type Identity struct {
	// Hub is the ID of the hub, and Object that of the object: the values of LabelHub and LabelWork.
	Hub, Object string
}

// IdentityOf is that of a hub, as far as it manages an object.
func IdentityOf(hub string, object *unstructured.Unstructured) Identity {
	return Identity{hub, ObjectID(object)}
}

// ObjectID identifies an object by kind and name, so that its Work can be replaced. A copy of the object has another ID.
func ObjectID(object *unstructured.Unstructured) string {
	return Digest(object.GroupVersionKind().Group, object.GetKind(), object.GetNamespace(), object.GetName())
}

func (i Identity) Labels() map[string]string {
	return map[string]string{LabelManaged: "true", LabelHub: i.Hub, LabelWork: i.Object}
}

// Ownership is who manages an object, from the point of view of a hub.
type Ownership int

const (
	// Unmanaged objects have no ownership labels, or copied ones.
	Unmanaged Ownership = iota
	// ManagedHere belongs to this hub.
	ManagedHere
	// ManagedByAnotherHub belongs to another hub.
	ManagedByAnotherHub
)

func (i Identity) OwnershipOf(object metav1.Object) Ownership {
	labels := object.GetLabels()
	switch {
	case labels[LabelManaged] != "true" || labels[LabelHub] == "" || labels[LabelWork] != i.Object:
		return Unmanaged
	case labels[LabelHub] != i.Hub:
		return ManagedByAnotherHub
	}
	return ManagedHere
}

// OwnedKeys are the keys of the labels and annotations that Fairlead owns by managedFields.
func OwnedKeys(object metav1.Object) (labels, annotations []string) {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != FieldOwner || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Labels      map[string]any `json:"f:labels"`
				Annotations map[string]any `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		labels = appendKeys(labels, fields.Metadata.Labels)
		annotations = appendKeys(annotations, fields.Metadata.Annotations)
	}
	return labels, annotations
}

func appendKeys(keys []string, fields map[string]any) []string {
	for name := range fields {
		if key, found := strings.CutPrefix(name, "f:"); found {
			keys = append(keys, key)
		}
	}
	return keys
}
