package manifest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestApplyManager(t *testing.T) {
	apply := func(manager, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: subresource}
	}
	update := metav1.ManagedFieldsEntry{Manager: "terraform", Operation: metav1.ManagedFieldsOperationUpdate}
	cases := map[string]struct {
		given, annotation string
		fields            []metav1.ManagedFieldsEntry
		want              string
	}{
		"nobody applies":                          {"", "", []metav1.ManagedFieldsEntry{update, apply("fairlead/rollout", "status")}, ""},
		"on the server's side":                    {"", "", []metav1.ManagedFieldsEntry{update, apply("fairlead/rollout", "status"), apply("argocd", "")}, "argocd"},
		"on the client's side":                    {"", "{}", []metav1.ManagedFieldsEntry{update}, ""},
		"one is given":                            {"me", "{}", []metav1.ManagedFieldsEntry{apply("argocd", "")}, "me"},
		"kubectl, who did the other thing before": {"", "{}", []metav1.ManagedFieldsEntry{apply("kubectl", "")}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{}}
			live.SetManagedFields(c.fields)
			if c.annotation != "" {
				live.SetAnnotations(map[string]string{lastApplied: c.annotation})
			}
			if got := applyManager(live, c.given); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestThreeWayPatch(t *testing.T) {
	cases := map[string]struct{ applied, live, manifest, want string }{
		"nothing":             {`{"spec":{"a":1}}`, "spec: {a: 1, b: 2}", "spec: {a: 1}", "{}"},
		"a change":            {`{"spec":{"a":1}}`, "spec: {a: 1, b: 2}", "spec: {a: 3}", `{"spec":{"a":3}}`},
		"a field goes":        {`{"spec":{"a":1,"c":1}}`, "spec: {a: 1, b: 2, c: 1}", "spec: {a: 1}", `{"spec":{"c":null}}`},
		"nobody ever applied": {"", "spec: {a: 1, b: 2}", "spec: {a: 3}", `{"spec":{"a":3}}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			parse := func(text string) *unstructured.Unstructured {
				object := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte("apiVersion: materialize.cloud/v1alpha2\nkind: Materialize\n"+text), &object.Object); err != nil {
					t.Fatal(err)
				}
				return object
			}
			live := parse(c.live)
			if c.applied != "" {
				live.SetAnnotations(map[string]string{lastApplied: c.applied})
			}
			got, err := threeWayPatch(live, parse(c.manifest))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTrimStrictError(t *testing.T) {
	cases := map[string]struct{ err, want string }{
		"a field that is none": {
			`Materialize.materialize.cloud "production" is invalid: patch: Invalid value: "{\"apiVersion\":\"materialize.cloud/v1alpha2\"}": strict decoding error: unknown field "spec.imageRef"`,
			`unknown field "spec.imageRef"`,
		},
		"a value that is none": {
			`Materialize.materialize.cloud "production" is invalid: spec.forceRollout: Invalid value: "x"`,
			`Materialize.materialize.cloud "production" is invalid: spec.forceRollout: Invalid value: "x"`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := trimStrictError(errors.New(c.err)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
