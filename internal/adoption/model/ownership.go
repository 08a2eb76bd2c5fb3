package model

import (
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
	return KeyOf(object).ID()
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
	// ManagedByKarmada belongs to a control plane of Karmada, which has other marks than a hub of Fairlead.
	ManagedByKarmada
)

func (i Identity) OwnershipOf(object metav1.Object) Ownership {
	labels := object.GetLabels()
	switch marked := labels[LabelManaged] == "true" && labels[LabelHub] != "" && labels[LabelWork] == i.Object; {
	case marked && labels[LabelHub] == i.Hub:
		// Marks of Karmada are from before the takeover.
		return ManagedHere
	case marked:
		return ManagedByAnotherHub
	case KarmadaMark(object) != "":
		return ManagedByKarmada
	}
	return Unmanaged
}

// OwnedKeys are the keys of the labels and annotations that Fairlead owns by managedFields.
func OwnedKeys(object *unstructured.Unstructured) (labels, annotations []string) {
	// GetManagedFields would convert the fields of all managers.
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "managedFields")
	entries, _ := value.([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if entry["manager"] != FieldOwner {
			continue
		}
		labels = appendKeys(labels, entry, "f:labels")
		annotations = appendKeys(annotations, entry, "f:annotations")
	}
	return labels, annotations
}

func appendKeys(keys []string, entry map[string]any, field string) []string {
	value, _, _ := unstructured.NestedFieldNoCopy(entry, "fieldsV1", "f:metadata", field)
	fields, _ := value.(map[string]any)
	for name := range fields {
		if key, found := strings.CutPrefix(name, "f:"); found {
			keys = append(keys, key)
		}
	}
	return keys
}
