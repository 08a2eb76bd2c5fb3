package hash

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// parse is a Materialize with a spec as users write it.
func parse(t testing.TB, spec string) *v1alpha2.Materialize {
	t.Helper()
	m := &v1alpha2.Materialize{}
	m.Namespace, m.Name = "shop", "mz"
	if err := yaml.UnmarshalStrict([]byte(spec), &m.Spec); err != nil {
		t.Fatalf("%v in\n%s", err, spec)
	}
	return m
}

func hashOf(t testing.TB, m *v1alpha2.Materialize) string {
	t.Helper()
	return Of(m)
}

func annotate(m *v1alpha2.Materialize, value string) *v1alpha2.Materialize {
	m.Annotations = map[string]string{v1alpha2.AnnotationForceRollout: value}
	return m
}

// jsonOf is a spec as JSON has it.
func jsonOf(t testing.TB, spec string) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(spec), &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func typed(t testing.TB, spec map[string]any) *v1alpha2.Materialize {
	t.Helper()
	m := &v1alpha2.Materialize{}
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &m.Spec)
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return m
}
