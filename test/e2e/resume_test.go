package e2e_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/operator"
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
		makeIstio(name+"-i", "v1.24.0"): "IstiodNotReady",
		withValues:                      "IstiodNotReady",
		makeIstio(name+"-v", ""):        "VersionNotFound",
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

	before := versions(t, w)
	i := install(t, w.Cluster)
	line := startRecorder(t, w.Config())
	again := i.start(t, line.kubeconfigFor(t, i.token(t, "fairlead")))
	again.leading(t)
	// What it looks at last is an Istio that changes: when that has been answered, the others have been looked at too.
	create(t, w.Client, makeIstio(name+"-z", "v1.24.0"))
	reported(t, w, name+"-z", "IstiodNotReady")

	for _, c := range line.made(changes) {
		if c.name != name+"-z" {
			t.Errorf("with nothing to do, it wrote: %s", c)
		}
	}
	after := versions(t, w)
	for key, version := range before {
		if after[key] != version {
			t.Errorf("%s went from version %s to %s", key, version, after[key])
		}
	}
}

func versions(t testing.TB, c client.Client) map[string]string {
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
	return all
}

// TestCrashAtEveryWrite kills the operator at each of its writes while it brings three Istios to where they belong: one
// from nothing, one from an older version in place, and one that cannot be helped.
func TestCrashAtEveryWrite(t *testing.T) {
	c := cluster.Shared(t)
	installCRDs(t, c.Config())
	admin := administrator(t, c.Config())
	faults.CrashAtEveryWrite(t, faults.Scenario{
		Config: c.Config(),
		Setup:  func(t testing.TB) faults.World { return threeIstios(t, admin, c.Config()) },
	})
}

// TestRefusedWritesAreMadeUpFor answers each write with what a busy or broken API server says.
func TestRefusedWritesAreMadeUpFor(t *testing.T) {
	c := cluster.Shared(t)
	installCRDs(t, c.Config())
	admin := administrator(t, c.Config())
	faults.DisturbEveryWrite(t, faults.Scenario{
		Config: c.Config(),
		Setup:  func(t testing.TB) faults.World { return threeIstios(t, admin, c.Config()) },
	}, faults.InternalError(), faults.Conflict())
}

// runOperator is an operator within the test, so that faults can be put into its connection.
func runOperator(ctx context.Context, config *rest.Config) error {
	options := operator.DefaultOptions()
	options.InstallCRDs, options.LeaderElection = false, false
	options.HealthProbeBindAddress, options.MetricsBindAddress = "0", "0"
	return operator.Run(ctx, config, options, logr.Discard())
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
		return isReported(ctx, admin, upgraded, "IstiodNotReady", &v1.Istio{})
	})
	change(t, admin, upgraded, func(istio *v1.Istio) { istio.Spec.Version = "v1.26.0" })
	write(revisionBased(makeIstio(fresh, "v1.24.0")))
	write(makeIstio(helpless, "v1.24-latest"))

	return faults.World{
		Run: runOperator,
		Settled: func(ctx context.Context) error {
			return errors.Join(
				isReported(ctx, admin, fresh, "IstiodNotReady", &v1.Istio{}),
				isReported(ctx, admin, upgraded, "IstiodNotReady", &v1.Istio{}),
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
		Teardown: func() {
			for _, n := range []string{fresh, upgraded, helpless} {
				if err := admin.Delete(context.Background(), makeIstio(n, "")); err != nil {
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
	go func() { ended <- runOperator(ctx, config) }()
	eventually(t, 20*time.Second, until)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
