package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/rollout"
)

// crash kills the operator at its writes from the first deploy to the second generation: at some of them, or at every one
// in full, which takes minutes.
func crash(t *testing.T, w *world) {
	scenario := faults.Scenario{
		Config: w.config, Timeout: patience,
		Setup: func(t testing.TB) faults.World { return w.environment(t).play(t) },
		Pick:  faults.Sample(11, faults.To("statefulsets.apps")),
	}
	faults.DisturbEveryWrite(t, scenario, faults.Kills()...)
}

// play asks for the second generation when the first one serves.
func (e *environment) play(t testing.TB) faults.World {
	watched := (*watcher)(nil)
	return faults.World{
		Run: func(ctx context.Context, config *rest.Config) error { return e.run(ctx, config, logr.Discard()) },
		Settled: func(ctx context.Context) error {
			m, err := e.get(ctx)
			if err != nil {
				return err
			}
			c := condition(m)
			if c.Reason != string(v1alpha2.ReasonApplied) || c.ObservedGeneration != m.Generation {
				return fmt.Errorf("%s: %s", c.Reason, c.Message)
			}
			if m.Status.ActiveGeneration == 1 {
				if err := e.complete(ctx, m, "v1"); err != nil {
					return err
				}
				watched = e.watch(t)
				e.edit(t, image("v2"))
				return errors.New("the second generation has just been asked for")
			}
			return e.complete(ctx, m, "v2")
		},
		Snapshot: func(ctx context.Context) (map[string]string, error) {
			watched.check(t)
			m, err := e.get(ctx)
			if err != nil {
				return nil, err
			}
			return faults.Dump{
				Kinds: append(rollout.Belongings()[:len(rollout.Belongings())-1], v1alpha2.GroupVersion.WithKind(v1alpha2.MaterializeKind)),
				In:    []client.ListOption{client.InNamespace(e.namespace)},
				Names: map[string]string{e.namespace: "NAMESPACE", m.Status.ResourceID: "RESOURCE"},
				Scrub: scrub,
			}.Snapshot(ctx, e)
		},
	}
}

// scrub removes what differs by nature: addresses, digests of names, and what the controllers of Kubernetes say.
func scrub(object *unstructured.Unstructured) {
	for _, path := range [][]string{
		{"metadata", "generation"}, {"metadata", "managedFields"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"},
		{"metadata", "annotations", v1alpha2.AnnotationApplied}, {"metadata", "annotations", "deployment.kubernetes.io/revision"},
	} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	if strings.HasPrefix(object.GetAPIVersion(), "apps/") {
		unstructured.RemoveNestedField(object.Object, "status")
	}
}
