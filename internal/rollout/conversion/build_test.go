package conversion

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/hash"
)

// object is a Materialize of a version, by what else it has.
func object(t testing.TB, apiVersion, rest string) map[string]any {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte("kind: Materialize\napiVersion: " + apiVersion + "\n" + rest))
	if err != nil {
		t.Fatalf("%v in\n%s", err, rest)
	}
	return decode(t, text)
}

func decode(t testing.TB, text []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return object
}

func encode(t testing.TB, object map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func convert(t testing.TB, object map[string]any, to string) map[string]any {
	t.Helper()
	converted, err := Convert(object, to)
	if err != nil {
		t.Fatal(err)
	}
	return converted
}

// withHash puts the rollout hash of an object where it says HASH.
func withHash(t testing.TB, object map[string]any) map[string]any {
	t.Helper()
	text := string(encode(t, object))
	if !strings.Contains(text, "HASH") {
		return object
	}
	m := &v1alpha2.Materialize{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, m); err != nil {
		t.Fatal(err)
	}
	return decode(t, []byte(strings.ReplaceAll(text, "HASH", hash.Of(m))))
}

// withoutPreserved is an object of v1alpha2 without what it says in v1alpha1.
func withoutPreserved(object map[string]any) map[string]any {
	if readPreserved(object["metadata"]) == nil {
		return object
	}
	object = maps.Clone(object)
	object["metadata"] = setAnnotation(object["metadata"], v1alpha2.AnnotationV1alpha1, "")
	if metadata, _ := object["metadata"].(map[string]any); len(metadata) == 0 {
		delete(object, "metadata")
	}
	return object
}

// asRead is a spec of v1alpha1 as it is read: with its role in both places.
func asRead(written any) any {
	spec, ok := withoutNulls(written).(map[string]any)
	if !ok {
		return written
	}
	annotations, ok := spec[serviceAccountAnnotations].(map[string]any)
	if arn := spec[environmentdIamRoleArn]; isText(arn) && (ok || spec[serviceAccountAnnotations] == nil) && annotations[v1alpha2.AnnotationRoleArn] == nil {
		if annotations = maps.Clone(annotations); annotations == nil {
			annotations = map[string]any{}
		}
		annotations[v1alpha2.AnnotationRoleArn] = arn
		spec[serviceAccountAnnotations] = annotations
	}
	return spec
}

// withoutNulls is a value as the API server stores it.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, field := range value {
			if field != nil {
				kept[name] = withoutNulls(field)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i := range value {
			kept[i] = withoutNulls(value[i])
		}
		return kept
	}
	return value
}
