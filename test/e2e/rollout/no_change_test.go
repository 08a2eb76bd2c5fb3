package rollout_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// TestNoRolloutWithoutChange: what says the same in another way, or is said by another field manager, rolls nothing out. The
// annotation does.
func TestNoRolloutWithoutChange(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.deployed(t)
	before, set := e.now(t), e.set(t, 1)
	manifest := func(extra map[string]any) *unstructured.Unstructured {
		spec := map[string]any{"environmentdImageRef": "materialize/environmentd:v1", "backendSecretName": "backend"}
		for key, value := range extra {
			spec[key] = value
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind(v1alpha2.MaterializeKind))
		u.SetNamespace(e.namespace)
		u.SetName("mz")
		return u
	}
	apply := func(manager string, extra map[string]any) {
		t.Helper()
		if err := w.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(manifest(extra)), client.FieldOwner(manager), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
	}
	apply("terraform", nil)
	apply("argo", map[string]any{"rolloutStrategy": "WaitUntilReady", "rolloutRequestTimeout": "1440m", "enableRbac": false})
	apply("people", map[string]any{"balancerdReplicas": int64(2), "environmentdExtraArgs": []any{}})
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "a"}, "annotations": map[string]any{"note": "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Patch(t.Context(), e.materialize(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = before.Status.LastCompletedRolloutHash })
	after := e.serves(t, 1, "v1")
	after.Status.ObservedGeneration, after.Status.Conditions = before.Status.ObservedGeneration, before.Status.Conditions
	if diff := cmp.Diff(before.Status, after.Status); diff != "" {
		t.Error(diff)
	}
	if now := e.set(t, 1); now.UID != set.UID || now.Generation != set.Generation {
		t.Error("what serves was touched")
	}

	// What is there already can be rolled out by those who may not change the spec.
	watched := e.watch(t)
	e.edit(t, func(m *v1alpha2.Materialize) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha2.AnnotationForceRollout, "again")
	})
	e.serves(t, 2, "v1")
	watched.check(t)
}
