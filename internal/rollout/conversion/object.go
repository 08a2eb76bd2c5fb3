package conversion

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/hash"
)

// parse reads an object as Convert takes it, and leaves everything but spec and status as it came: metadata is most of an
// object, because of who manages which field, and conversion has no business there.
func parse(text []byte) (map[string]any, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	object := make(map[string]any, len(raw))
	for name, value := range raw {
		if name != "apiVersion" && name != "kind" && name != "spec" && name != "status" && string(value) != "null" {
			object[name] = value
			continue
		}
		var parsed any
		if err := utiljson.Unmarshal(value, &parsed); err != nil {
			return nil, fmt.Errorf("read %s of the object: %w", name, err)
		}
		object[name] = parsed
	}
	return object, nil
}

// hashOf is the rollout hash of a spec of v1alpha2.
func hashOf(metadata any, spec map[string]any) (string, error) {
	m := &v1alpha2.Materialize{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &m.Spec); err != nil {
		return "", fmt.Errorf("hash the spec: %w", err)
	}
	m.Annotations = objectMetaOf(metadata).Annotations
	return hash.Of(m), nil
}

// objectMeta is the part of metadata that conversion reads.
type objectMeta struct {
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	Generation  int64             `json:"generation"`
	Annotations map[string]string `json:"annotations"`
}

func objectMetaOf(metadata any) objectMeta {
	var l objectMeta
	switch metadata := metadata.(type) {
	case json.RawMessage:
		// Values of the wrong type are left out, as below.
		_ = utiljson.Unmarshal(metadata, &l)
	case map[string]any:
		l.Namespace, _ = metadata["namespace"].(string)
		l.Name, _ = metadata["name"].(string)
		l.Generation = integer(metadata["generation"])
		annotations, _ := metadata["annotations"].(map[string]any)
		if forced, ok := annotations[v1alpha2.AnnotationForceRollout].(string); ok {
			l.Annotations = map[string]string{v1alpha2.AnnotationForceRollout: forced}
		}
	}
	return l
}

// nameOf is the name of an object for messages.
func nameOf(object map[string]any) string {
	kind, isText := object["kind"].(string)
	if !isText {
		kind = "object"
	}
	l := objectMetaOf(object["metadata"])
	switch {
	case l.Name == "":
		return kind + " without a name"
	case l.Namespace == "":
		return kind + " " + l.Name
	}
	return kind + " " + l.Namespace + "/" + l.Name
}

// jsonTypeOf is the name of a JSON type for messages.
func jsonTypeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}
