package conversion

import (
	"encoding/json"
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
