package adoption

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FieldOwner is who writes, in the eyes of the API server.
const FieldOwner = "fairlead/adoption"

// What every object in a cluster carries that Fairlead manages. They are labels, because the annotations of a Deployment are
// part of what moves its generation.
const (
	// LabelManaged tells that a hub manages the object.
	LabelManaged = "karmada.io/managed"
	// LabelHub has which hub that is: the UID of its namespace kube-system.
	LabelHub = "fairlead.dev/hub"
	// LabelWork has which Work of the hub the object belongs to: what markOf says of it.
	LabelWork = "fairlead.dev/work"
)

// markKeys are the keys of all marks.
var markKeys = []string{LabelManaged, LabelHub, LabelWork}

// identity is who manages an object.
type identity struct{ hub, work string }

// identityOf is that of a hub, as far as it manages an object.
func identityOf(hub string, object *unstructured.Unstructured) identity {
	return identity{hub, markOf(object)}
}

// markOf an object is the same for whatever Work it ever belongs to, so that a Work can be replaced. On any other object it was
// copied there.
func markOf(object *unstructured.Unstructured) string {
	return digest(object.GroupVersionKind().Group, object.GetKind(), object.GetNamespace(), object.GetName())
}

func (i identity) marks() map[string]string {
	return map[string]string{LabelManaged: "true", LabelHub: i.hub, LabelWork: i.work}
}

// ownership is what the marks of an object say to a hub.
type ownership int

const (
	// nobodys has no marks, or some that were copied.
	nobodys ownership = iota
	// ours belongs to this hub.
	ours
	// anotherHubs belongs to another hub.
	anotherHubs
)

func (i identity) of(object metav1.Object) ownership {
	labels := object.GetLabels()
	switch {
	case labels[LabelManaged] != "true" || labels[LabelHub] == "" || labels[LabelWork] != i.work:
		return nobodys
	case labels[LabelHub] != i.hub:
		return anotherHubs
	}
	return ours
}

// keys are labels and annotations.
type keys struct{ labels, annotations []string }

// ownKeys are those that Fairlead was the last to set on an object, by who manages its fields.
func ownKeys(object metav1.Object) keys {
	var own keys
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
		own.labels = append(own.labels, keysIn(fields.Metadata.Labels)...)
		own.annotations = append(own.annotations, keysIn(fields.Metadata.Annotations)...)
	}
	return own
}

func keysIn(fields map[string]any) []string {
	var names []string
	for name := range fields {
		if key, found := strings.CutPrefix(name, "f:"); found {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}
