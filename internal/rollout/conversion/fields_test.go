package conversion

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/api/materialize/v1alpha1"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// paths are those of all fields of a type, down to values, with what a value there may be.
func paths(t reflect.Type, at string, to map[string]any) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			paths(f.Type, at, to)
			continue
		}
		to[at+"."+name] = example(f.Type)
	}
}

// example is a value of a type, as JSON has it: anything but what means none.
func example(t reflect.Type) any {
	switch t.Kind() {
	case reflect.Pointer:
		return example(t.Elem())
	case reflect.String:
		return "x"
	case reflect.Bool:
		return true
	case reflect.Int32, reflect.Int64:
		return int64(7)
	case reflect.Slice:
		return []any{example(t.Elem())}
	case reflect.Map:
		return map[string]any{"x": example(t.Elem())}
	case reflect.Struct:
		if reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ UnmarshalJSON([]byte) error }]()) {
			return "1"
		}
		fields := map[string]any{}
		paths(t, "", fields)
		inner := map[string]any{}
		for name, value := range fields {
			inner[strings.TrimPrefix(name, ".")] = value
		}
		return inner
	}
	panic("no example of " + t.String())
}

func fieldsOf[Spec, Status any]() map[string]any {
	fields := map[string]any{}
	paths(reflect.TypeFor[Spec](), "spec", fields)
	paths(reflect.TypeFor[Status](), "status", fields)
	return fields
}

// holding is an object with one field.
func holding(apiVersion, path string, value any) map[string]any {
	part, name, _ := strings.Cut(path, ".")
	return map[string]any{"apiVersion": apiVersion, "kind": "Materialize", part: map[string]any{name: value}}
}

// TestEveryField goes through all fields of both versions, so that a new one is either in both, and then travels, or has a
// rule that is written down here.
func TestEveryField(t *testing.T) {
	olds := fieldsOf[v1alpha1.MaterializeSpec, v1alpha1.MaterializeStatus]()
	news := fieldsOf[v1alpha2.MaterializeSpec, v1alpha2.MaterializeStatus]()

	// What becomes of the fields that only v1alpha1 has.
	replaced := map[string]map[string]any{
		"spec.requestRollout":                {},
		"spec.inPlaceRollout":                {},
		"spec.environmentdIamRoleArn":        {"serviceAccountAnnotations": map[string]any{"eks.amazonaws.com/role-arn": "x"}},
		"status.lastCompletedRolloutRequest": {},
		"status.resourcesHash":               {},
	}

	for path, value := range news {
		if _, found := olds[path]; !found {
			t.Errorf("%s is in v1alpha2 alone: it is lost on the way through v1alpha1", path)
		}
		stored := holding(newer, path, value)
		through := convert(t, stored, older)
		if diff := cmp.Diff(holding(older, path, value), through); diff != "" {
			t.Errorf("%s to v1alpha1: %s", path, diff)
		}
		if diff := cmp.Diff(stored, convert(t, through, newer)); diff != "" {
			t.Errorf("%s through v1alpha1: %s", path, diff)
		}
	}
	for path, value := range olds {
		_, inBoth := news[path]
		becomes, hasRule := replaced[path]
		switch {
		case inBoth && hasRule:
			t.Errorf("%s is in both versions, and has a rule", path)
			continue
		case !inBoth && !hasRule:
			t.Errorf("%s is in v1alpha1 alone: say in this test what becomes of it", path)
			continue
		}
		want := holding(newer, path, value)
		if hasRule {
			part, _, _ := strings.Cut(path, ".")
			want[part] = becomes
		}
		stored := convert(t, holding(older, path, value), newer)
		if diff := cmp.Diff(want, withoutPreserved(stored)); diff != "" {
			t.Errorf("%s to v1alpha2: %s", path, diff)
		}
		if diff := cmp.Diff(asRead(holding(older, path, value)["spec"]), convert(t, stored, older)["spec"]); diff != "" {
			t.Errorf("%s to v1alpha2 and back: %s", path, diff)
		}
	}
	for path := range replaced {
		if _, found := olds[path]; !found {
			t.Errorf("%s has a rule, and is not in v1alpha1", path)
		}
	}
}

// TestNativeStatus: all but what v1alpha1 once had is a sign of v1alpha2, so that a new field is one too.
func TestNativeStatus(t *testing.T) {
	once := []string{
		"resourceId", "activeGeneration", "lastCompletedRolloutEnvironmentdImageRef", "conditions",
		"lastCompletedRolloutRequest", "resourcesHash",
	}
	for path, value := range fieldsOf[struct{}, v1alpha1.MaterializeStatus]() {
		_, name, _ := strings.Cut(path, ".")
		want := slices.Contains(once, name)
		if got := isV1alpha1Status(map[string]any{name: value}); got != want {
			t.Errorf("a status with %s alone is native: %v", name, got)
		}
		if got := isV1alpha1Status(map[string]any{name: value, "resourceId": "x"}); got != want {
			t.Errorf("a status with %s is native: %v", name, got)
		}
	}
}
