package rollout_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// TestOlderManifests: who goes on with v1alpha1 gets the same rollouts, by changing the spec alone.
func TestOlderManifests(t *testing.T) {
	t.Parallel()
	w := convertingWorld(t)
	w.live(t)
	e := &environment{w, w.Namespace(t)}
	apply := func(tag string, more map[string]any) {
		t.Helper()
		spec := map[string]any{
			"environmentdImageRef": "materialize/environmentd:" + tag, "backendSecretName": "backend",
			"requestRollout": "22222222-2222-2222-2222-222222222222",
		}
		for key, value := range more {
			spec[key] = value
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetAPIVersion("materialize.cloud/v1alpha1")
		u.SetKind(v1alpha2.MaterializeKind)
		u.SetNamespace(e.namespace)
		u.SetName("mz")
		eventually(t, func(ctx context.Context) error {
			return w.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("people"), client.ForceOwnership)
		})
	}
	apply("v1", nil)
	before := e.serves(t, 1, "v1")
	apply("v1", map[string]any{"requestRollout": "33333333-3333-3333-3333-333333333333", "balancerdReplicas": int64(3)})
	after := e.serves(t, 1, "v1")
	after.Status.ObservedGeneration, after.Status.Conditions = before.Status.ObservedGeneration, before.Status.Conditions
	if diff := cmp.Diff(before.Status, after.Status); diff != "" {
		t.Errorf("another requestRollout has changed the status: %s", diff)
	}
	watched := e.watch(t)
	apply("v2", nil)
	e.serves(t, 2, "v2")
	watched.check(t)
}
