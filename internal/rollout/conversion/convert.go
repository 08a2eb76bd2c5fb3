// Package conversion converts a Materialize between the versions of the API.
//
// Server-side apply converts the fields of one manager at a time, so the conversion works on JSON rather than on types:
// absent fields are neither required nor added, and unknown fields stay. What only v1alpha1 has travels in an annotation, so
// that an object of v1alpha1 is read as it was written.
package conversion

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/fairlead/fairlead/api/materialize/v1alpha1"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

var (
	older = v1alpha1.GroupVersion.String()
	newer = v1alpha2.GroupVersion.String()
)

// Convert returns the object in another version of the API. The object is not changed, and the result shares with it what
// both versions have in common. The values are those of JSON; metadata may also be json.RawMessage.
func Convert(object map[string]any, toAPIVersion string) (map[string]any, error) {
	from, kind := object["apiVersion"], object["kind"]
	if kind != v1alpha1.MaterializeKind || from != older && from != newer {
		return nil, fmt.Errorf("convert %s: it is of kind %v in %v, and only %s in %s or %s can be converted",
			nameOf(object), kind, from, v1alpha1.MaterializeKind, older, newer)
	}
	if toAPIVersion != older && toAPIVersion != newer {
		return nil, fmt.Errorf("convert %s: there is no %s: ask for %s or %s", nameOf(object), toAPIVersion, older, newer)
	}
	if from == toAPIVersion {
		return object, nil
	}
	converted := maps.Clone(object)
	converted["apiVersion"] = toAPIVersion
	spec, badSpec := child(object, "spec")
	status, badStatus := child(object, "status")
	err := cmp.Or(badSpec, badStatus)
	switch {
	case err != nil:
	case toAPIVersion == newer:
		err = upgrade(converted, spec, status)
	default:
		downgrade(converted, spec, status)
	}
	if err != nil {
		return nil, fmt.Errorf("convert %s to %s: %w", nameOf(object), toAPIVersion, err)
	}
	return converted, nil
}

// upgrade changes a shallow copy of an object of v1alpha1; its spec and status are shared with the original and stay as they
// are.
func upgrade(object, was, status map[string]any) error {
	before := readPreserved(object["metadata"])
	role := ""
	if before != nil {
		role = before.Role
	}
	spec, rest, err := upgradeSpec(was, role)
	if err != nil {
		return err
	}
	if was != nil {
		object["spec"] = spec
	}
	if before != nil {
		rest.Completed = before.Completed
	}
	if status != nil {
		upgraded := upgradeStatus(status)
		if isWholeObject(spec) && isV1alpha1Status(status) {
			history, err := rolloutHashes(objectMetaOf(object["metadata"]).Generation, was, status, func() (string, error) { return hashOf(object["metadata"], spec) })
			if err != nil {
				return err
			}
			maps.Copy(upgraded, history)
		}
		object["status"] = upgraded
		rest.keepCompleted(object["metadata"], was, status, upgraded)
	}
	if before != nil || !rest.isEmpty() {
		object["metadata"] = setAnnotation(object["metadata"], v1alpha2.AnnotationV1alpha1, rest.String())
	}
	return nil
}

// downgrade changes a shallow copy of an object of v1alpha2. All fields of v1alpha2 exist in v1alpha1.
func downgrade(object, was, status map[string]any) {
	if isWholeObject(was) && isV1alpha1Status(status) {
		status = markV1alpha2Status(status)
		object["status"] = status
	}
	rest := readPreserved(object["metadata"])
	if rest == nil {
		return
	}
	if spec := rest.restore(was); spec != nil {
		object["spec"] = spec
		if request := rest.completedRequest(object["metadata"], spec, status); request != "" {
			completed := maps.Clone(status)
			completed[lastCompletedRolloutRequest] = request
			object["status"] = completed
		}
	}
	object["metadata"] = setAnnotation(object["metadata"], v1alpha2.AnnotationV1alpha1, rest.String())
}

// child is the object in a field, nil if the field is absent.
func child(of map[string]any, name string) (map[string]any, error) {
	switch value := of[name].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return value, nil
	default:
		return nil, fmt.Errorf("%s is %s: make it an object", name, jsonTypeOf(value))
	}
}
