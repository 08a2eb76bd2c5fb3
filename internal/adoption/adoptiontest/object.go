// Package adoptiontest builds objects for the tests of adoption.
package adoptiontest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Object reads YAML, with whole numbers as an API server gives them; of "Kind group/version" in the first line, the name is "it"
// and the namespace "shop".
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	head, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	kind, version, _ := strings.Cut(head, " ")
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if raw, err := yaml.YAMLToJSON([]byte(rest)); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	} else if err := json.Unmarshal(raw, &u.Object); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if u.Object == nil {
		u.Object = map[string]any{}
	}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetName("it")
	u.SetNamespace("shop")
	return u
}
