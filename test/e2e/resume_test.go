package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/internal/revision"
	"github.com/fairlead/fairlead/test/cluster"
)

// TestRestartWritesNothing starts an operator over Istios in every state that one can be in.
func TestRestartWritesNothing(t *testing.T) {
	w := startWorld(t)
	name := uniqueName(t)
	paused := makeIstio(name+"-p", "v1.24.0")
	paused.Annotations = map[string]string{"fairlead.dev/paused": "true"}
	withValues := revisionBased(makeIstio(name+"-r", "v1.24.0"))
	withValues.Spec.Values = v1.Values{"a": map[string]any{"b": []any{int64(1), 1.5, "x", true}, "empty": map[string]any{}}}
	withValues.Spec.Profile = "ambient"
	states := map[*v1.Istio]v1.State{
		makeIstio(name+"-i", "v1.24.0"): "NamespaceNotFound",
		withValues:                      "NamespaceNotFound",
		makeIstio(name+"-v", "v1.25.0"): "VersionNotFound",
		paused:                          "Paused",
	}
	for istio := range states {
		create(t, w.Client, istio)
	}
	for istio, state := range states {
		reported(t, w, istio.Name, state)
	}
	if code := w.operator.stop(t); code != 0 {
		t.Fatalf("ended with %d", code)
	}

	i := install(t, w.Cluster)
	const counted = "--metrics-insecure-bind-address=127.0.0.1:0"
	// The first operator of an installation makes a certificate, and tells the CRDs of it.
	first := i.start(t, startRecorder(t, w.Config()).kubeconfigFor(t, i.token(t, "fairlead")), counted)
	first.leading(t)
	lookedAtAll(t, first, "istio", len(states))
	if code := first.stop(t); code != 0 {
		t.Fatalf("ended with %d", code)
	}

	before := versions(t, w, name)
	line := startRecorder(t, w.Config())
	again := i.start(t, line.kubeconfigFor(t, i.token(t, "fairlead")), counted)
	again.leading(t)
	lookedAtAll(t, again, "istio", len(states))

	for _, c := range line.made(changes) {
		t.Errorf("with nothing to do, it wrote: %s", c)
	}
	if diff := cmp.Diff(before, versions(t, w, name)); diff != "" {
		t.Errorf("versions went (-before +after):\n%s", diff)
	}
}

// lookedAtAll waits until an operator that has just begun to lead has looked at all that there was: its queue is filled
// before the first is looked at, and at which it looks last is not to be relied upon.
func lookedAtAll(t testing.TB, p *process, controller string, atLeast int) {
	t.Helper()
	address := p.address(t, "insecure metrics")
	eventually(t, time.Minute, func(context.Context) error {
		_, metrics := probe(t, address, "/metrics")
		queued := sample(t, metrics, "workqueue_adds_total", controller)
		looked := sample(t, metrics, "controller_runtime_reconcile_total", controller)
		if queued < float64(atLeast) || looked != queued {
			return fmt.Errorf("looked at %v of %v, and of at least %d", looked, queued, atLeast)
		}
		return nil
	})
}

// sample is the sum of a metric's samples for one controller.
func sample(t testing.TB, metrics, name, controller string) float64 {
	t.Helper()
	var sum float64
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, name+"{") || !strings.Contains(line, `controller="`+controller+`"`) {
			continue
		}
		fields := strings.Fields(line)
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		sum += value
	}
	return sum
}

// versions of the Istios and IstioRevisions whose names begin alike.
func versions(t testing.TB, c client.Client, prefix string) map[string]string {
	t.Helper()
	var istios v1.IstioList
	var revisions v1.IstioRevisionList
	if err := errors.Join(c.List(t.Context(), &istios), c.List(t.Context(), &revisions)); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, o := range istios.Items {
		all["Istio "+o.Name] = o.ResourceVersion
	}
	for _, o := range revisions.Items {
		all["IstioRevision "+o.Name] = o.ResourceVersion
	}
	// What is left of other tests is being collected as garbage.
	maps.DeleteFunc(all, func(key, _ string) bool { return !strings.Contains(key, " "+prefix) })
	return all
}

// TestDisturbedWrites disturbs the operator while it brings three Istios to where they belong: one from nothing, one
// from an older version in place, and one that cannot be helped.
func TestDisturbedWrites(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Profile: "hub"})
	installCRDs(t, c.Config())
	admin := administrator(t, c.Config())
	scenario := faults.Scenario{
		Config: c.Config(),
		Setup:  func(t testing.TB) faults.World { return threeIstios(t, admin, c.Config()) },
	}
	busyOrBroken := faults.Sample(3, faults.To("istiorevisions.sailoperator.io"))
	faults.DisturbWrites(t, scenario, func(k int, writes faults.Log) []faults.Action {
		if busyOrBroken(k, writes) {
			return append(faults.Kills(), faults.InternalError(), faults.Conflict())
		}
		return faults.Kills()
	})
}

// runOperator is an operator within the test, so that faults can be put into its connection.
func runOperator(t testing.TB) func(ctx context.Context, config *rest.Config) error {
	t.Helper()
	options := operator.DefaultOptions()
	options.Passages = []string{revision.Name}
	options.InstallCRDs, options.LeaderElection = false, false
	options.HealthProbeBindAddress, options.MetricsBindAddress = "0", "0"
	options.Charts.Dir = cluster.Charts(t)
	return func(ctx context.Context, config *rest.Config) error {
		return operator.Run(ctx, config, options, logr.Discard())
	}
}

func threeIstios(t testing.TB, admin client.Client, config *rest.Config) faults.World {
	t.Helper()
	name := uniqueName(t)
	fresh, upgraded, helpless := name+"-f", name+"-u", name+"-h"
	write := func(istio *v1.Istio) {
		t.Helper()
		if err := admin.Create(t.Context(), istio); err != nil {
			t.Fatal(err)
		}
	}

	write(makeIstio(upgraded, "v1.24.0"))
	undisturbed(t, config, func(ctx context.Context) error {
		return isReported(ctx, admin, upgraded, "NamespaceNotFound", &v1.Istio{})
	})
	change(t, admin, upgraded, func(istio *v1.Istio) { istio.Spec.Version = "v1.26.0" })
	write(revisionBased(makeIstio(fresh, "v1.24.0")))
	write(makeIstio(helpless, "v1.25-latest"))

	return faults.World{
		Run: runOperator(t),
		Settled: func(ctx context.Context) error {
			return errors.Join(
				isReported(ctx, admin, fresh, "NamespaceNotFound", &v1.Istio{}),
				isReported(ctx, admin, upgraded, "NamespaceNotFound", &v1.Istio{}),
				isReported(ctx, admin, helpless, "VersionNotFound", &v1.Istio{}),
			)
		},
		Snapshot: func(ctx context.Context) (map[string]string, error) {
			all, err := faults.Dump{
				Kinds: []schema.GroupVersionKind{
					v1.GroupVersion.WithKind(v1.IstioKind),
					v1.GroupVersion.WithKind(v1.IstioRevisionKind),
				},
				Names: map[string]string{name: "WORLD"},
			}.Snapshot(ctx, admin)
			// What is left of other tests is being collected as garbage.
			maps.DeleteFunc(all, func(key, _ string) bool { return !strings.Contains(key, "WORLD") })
			return all, err
		},
		// What would be collected as garbage, if the collector had heard of its kind yet, goes too.
		Teardown: func() {
			unprotected := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			for _, object := range []client.Object{
				makeIstio(fresh, ""), makeIstio(upgraded, ""), makeIstio(helpless, ""),
				&v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: fresh + "-v1-24-0"}},
				&v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: upgraded}},
			} {
				err := errors.Join(
					client.IgnoreNotFound(admin.Delete(context.Background(), object)),
					client.IgnoreNotFound(admin.Patch(context.Background(), object, unprotected)),
				)
				if err != nil {
					t.Error(err)
				}
			}
		},
	}
}

// undisturbed lets an operator work until something has come true.
func undisturbed(t testing.TB, config *rest.Config, until func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	run := runOperator(t)
	go func() { ended <- run(ctx, config) }()
	eventually(t, time.Minute, until)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
