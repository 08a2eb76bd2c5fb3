package objects

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestKeepSelector(t *testing.T) {
	type labels = map[string]any
	deployment := func(selector map[string]any, template labels) *unstructured.Unstructured {
		spec := map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": template}}}
		if selector != nil {
			spec["selector"] = selector
		}
		return &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	}
	match := func(l labels) map[string]any { return map[string]any{"matchLabels": l} }
	expressions := map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists"}}}
	ours := labels{"app": "balancerd", "id": "a"}
	want := deployment(match(ours), labels{"app": "balancerd", "id": "a", "team": "data"})
	for name, c := range map[string]struct{ have, expect *unstructured.Unstructured }{
		"its own": {deployment(match(ours), ours), want},
		"none":    {deployment(nil, nil), want},
		"of others": {
			deployment(match(labels{"theirs": "b"}), labels{"theirs": "b", "more": "c"}),
			deployment(match(labels{"theirs": "b"}), labels{"app": "balancerd", "id": "a", "team": "data", "theirs": "b"}),
		},
		"without labels": {
			deployment(expressions, labels{"app": "b"}),
			deployment(expressions, labels{"app": "balancerd", "id": "a", "team": "data"}),
		},
		"with another value of a label of ours, which the Service needs: the API server refuses": {
			deployment(match(labels{"app": "b"}), labels{"app": "b"}),
			deployment(match(labels{"app": "b"}), labels{"app": "balancerd", "id": "a", "team": "data"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := want.DeepCopy()
			if diff := cmp.Diff(c.expect, KeepSelector(want, c.have)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(before, want); diff != "" {
				t.Errorf("what is wanted was changed: %s", diff)
			}
		})
	}
}

func TestKeepSubjects(t *testing.T) {
	binding := func(names ...string) *unstructured.Unstructured {
		subjects := []any{}
		for _, name := range names {
			subjects = append(subjects, map[string]any{"kind": "ServiceAccount", "name": name})
		}
		return &unstructured.Unstructured{Object: map[string]any{"subjects": subjects}}
	}
	for name, c := range map[string]struct{ want, have, expect *unstructured.Unstructured }{
		"the same":       {binding("a"), binding("a"), binding("a")},
		"one more":       {binding("a", "b"), binding("a"), binding("a", "b")},
		"one of before":  {binding("b"), binding("a"), binding("b", "a")},
		"nobody so far":  {binding("b"), &unstructured.Unstructured{}, binding("b")},
		"somebody is in": {binding("b"), binding("a", "b"), binding("b", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.expect, KeepSubjects(c.want, c.have)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
