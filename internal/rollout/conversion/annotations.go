package conversion

import (
	"bytes"
	"encoding/json"
	"maps"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// annotationOf is an annotation of metadata, which is as Convert takes it.
func annotationOf(metadata any, key string) (string, bool) {
	switch metadata := metadata.(type) {
	case json.RawMessage:
		if !mayContain(metadata, key) {
			return "", false
		}
		_, annotations := parseAnnotations(metadata)
		var value any
		if utiljson.Unmarshal(annotations[key], &value) != nil {
			return "", false
		}
		text, ok := value.(string)
		return text, ok
	case map[string]any:
		annotations, _ := metadata["annotations"].(map[string]any)
		text, ok := annotations[key].(string)
		return text, ok
	}
	return "", false
}

// setAnnotation returns metadata with an annotation, or without it if the value is empty. The metadata is not changed; it
// stays as it is if it is no object.
func setAnnotation(metadata any, key, value string) any {
	switch metadata := metadata.(type) {
	case nil:
		return map[string]any{"annotations": map[string]any{key: value}}
	case json.RawMessage:
		fields, annotations := parseAnnotations(metadata)
		if fields == nil {
			return metadata
		}
		delete(annotations, key)
		if value != "" {
			annotations[key] = toJSON(value)
		}
		if fields["annotations"] = toJSON(annotations); len(annotations) == 0 {
			delete(fields, "annotations")
		}
		return json.RawMessage(toJSON(fields))
	case map[string]any:
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations = maps.Clone(annotations); annotations == nil {
			annotations = map[string]any{}
		}
		delete(annotations, key)
		if value != "" {
			annotations[key] = value
		}
		fields := maps.Clone(metadata)
		if fields["annotations"] = annotations; len(annotations) == 0 {
			delete(fields, "annotations")
		}
		return fields
	}
	return metadata
}

// mayContain spares the work of parsing metadata that certainly does not have a key: most of it is who manages which field.
func mayContain(metadata json.RawMessage, key string) bool {
	return bytes.Contains(metadata, []byte(key)) || bytes.Contains(metadata, []byte(`\u`)) || bytes.Contains(metadata, []byte(`\/`))
}

// parseAnnotations gives the fields of metadata, nil if it is no object, and its annotations, which are never nil.
func parseAnnotations(metadata json.RawMessage) (fields, annotations map[string]json.RawMessage) {
	if json.Unmarshal(metadata, &fields) != nil {
		fields = nil
	}
	if json.Unmarshal(fields["annotations"], &annotations) != nil || annotations == nil {
		annotations = map[string]json.RawMessage{}
	}
	return fields, annotations
}

func toJSON(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		// Text, and what was parsed, can be written.
		panic(err)
	}
	return text
}
