// Package adoptiontest builds objects for the tests of adoption.
package adoptiontest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Served is an object as an API server gives it, with whole numbers where there are any.
func Served(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := Object(t, text).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

// Object reads YAML; of "Kind group/version" in the first line, the name is "it" and the namespace "shop".
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
