package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestInterruptedOperator runs operators whose requests to the API server can be logged and cut off, instead of the one
// that all tests share, so it is not parallel to them.
func TestInterruptedOperator(t *testing.T) {
	w := theWorld(t)
	config, err := clientcmd.BuildConfigFromFlags("", w.OperatorKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	w.Operator.Kill()
	defer w.restart(t)
	t.Run("started again with nothing to do", func(t *testing.T) { nothingToDo(t, w, config) })
	t.Run("killed at its writes", func(t *testing.T) { crash(t, w, config) })
}

// run is an operator in this process, until the context ends.
func (w *world) run(ctx context.Context, config *rest.Config, log logr.Logger) error {
	options := operator.DefaultOptions()
	options.Passages = []string{rollout.Name}
	options.InstallCRDs, options.LeaderElection = false, false
	options.HealthProbeBindAddress, options.MetricsBindAddress, options.Webhook.BindAddress = "0", "0", "0"
	options.Rollout.URL, options.Rollout.Timeout = w.fleet.URL(), time.Hour
	return operator.Run(ctx, config, options, log)
}

// begin runs such an operator until the function that it returns is called.
func (w *world) begin(t testing.TB, config *rest.Config) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	log, ended := &harness.Log{}, make(chan error, 1)
	go func() { ended <- w.run(ctx, config, operator.NewLogger(log, "text", "info")) }()
	end = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended: %v", err)
		}
	})
	t.Cleanup(func() {
		end()
		if t.Failed() {
			harness.KeepLog(t, "operator", log.Since(0))
		}
	})
	return end
}

// nothingToDo: whatever state environments are in, an operator that starts writes nothing.
func nothingToDo(t *testing.T, w *world, config *rest.Config) {
	end := w.begin(t, config)
	serving, waiting, late, sentinel := w.environment(t), w.environment(t), w.environment(t), w.environment(t)
	late.daemon(2).Behave(environmentd.Manner{CatchesUp: true})
	for _, e := range []*environment{serving, waiting, late, sentinel} {
		e.serves(t, 1, "v1")
	}
	waiting.edit(t, image("v2"), strategy(v1alpha2.RolloutManuallyPromote))
	late.edit(t, image("v2"))
	late.meets(t, tells(v1alpha2.ReasonApplying, "environmentd has not caught up yet"))
	late.lateBy(t, 25*time.Hour)
	waiting.says(t, v1alpha2.ReasonReadyToPromote)
	late.says(t, v1alpha2.ReasonRolloutTimeout)
	wait.Until(t, func(context.Context) error {
		for name := range late.ownedObjects(t) {
			if strings.HasSuffix(name, "-2") {
				return fmt.Errorf("%s is still there", name)
			}
		}
		return nil
	})
	end()
	all := []*environment{serving, waiting, late}
	before := make([]*v1alpha2.Materialize, len(all))
	for i, e := range all {
		before[i] = e.now(t)
	}

	in := faults.New()
	w.begin(t, in.Config(config))
	// An operator that has done this has looked at the others.
	sentinel.edit(t, image("v2"))
	sentinel.serves(t, 2, "v2")
	for _, entry := range in.Log() {
		if entry.Namespace != sentinel.namespace {
			t.Errorf("it wrote %s", entry.Request)
		}
	}
	for i, e := range all {
		if diff := cmp.Diff(before[i], e.now(t)); diff != "" {
			t.Error(diff)
		}
	}
}

// crash kills the operator at its writes from the first deploy to the second generation: when it has made the second
// generation, and when it has begun to remove the first, or, in full, at every one.
func crash(t *testing.T, w *world, config *rest.Config) {
	choose := faults.At(t, map[string][]faults.Action{"statefulsets.apps 2": faults.Kills(), "delete 1": faults.Kills()})
	if faults.Full() {
		choose = func(int, faults.Log) []faults.Action { return faults.Kills() }
	}
	faults.DisturbWrites(t, faults.Scenario{
		Config: config, Timeout: wait.Deadline(),
		Setup: func(t testing.TB) faults.World { return w.environment(t).play(t) },
	}, choose)
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
				Kinds: append(rollout.OwnedKinds()[:len(rollout.OwnedKinds())-1], v1alpha2.GroupVersion.WithKind(v1alpha2.MaterializeKind)),
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
