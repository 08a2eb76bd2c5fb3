package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// onlyRevision is what an operator needs that is alone in its cluster.
var onlyRevision = []string{"--passages", revision.Name, "--leader-elect=false"}

// TestEmptyCluster are tests that each need a cluster without an operator, one after the other.
func TestEmptyCluster(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Profile: "hub", KeepNamespaces: true})
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster.Cluster)
	}{
		{"without CRDs", withoutCRDs}, // the first, for the others need them
		{"plan, then status", planThenStatus},
		{"restart writes nothing", restartWritesNothing},
		{"disturbed writes", disturbedWrites},
		{"lacking permissions", lackingPermissions},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

func withoutCRDs(t *testing.T, c *cluster.Cluster) {
	admin := administrator(t, c.Config())
	p := startOperator(t, c.Kubeconfig(), append(onlyRevision, "--install-crds=false")...)
	line := p.logged(t, "find the kinds of passage revision failed, will be tried again")
	if !strings.Contains(fmt.Sprint(line["err"]), "install the CRDs with `fairlead crds install`") {
		t.Errorf("the log does not say what to do: %v", line)
	}
	if code, _ := probe(t, p.address(t, "health probes"), "/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz says %d", code)
	}
	if got := fairlead(t, "plan", "istio", "default", "--kubeconfig", c.Kubeconfig()); got.code != 2 ||
		!strings.Contains(got.stderr, "`fairlead crds install`") {
		t.Errorf("plan: %+v", got)
	}

	if got := fairlead(t, "crds", "install", "--timeout", wait.Deadline().String(), "--kubeconfig", c.Kubeconfig()); got.code != 0 || !strings.Contains(got.stdout, "Created") {
		t.Errorf("crds install: %+v", got)
	}
	p.leading(t)
	create(t, admin, makeIstio("default", "v1.24.0"))
	reported(t, admin, "default", "NamespaceNotFound")
}

// planThenStatus is what a user sees: what would be done, then that it was.
func planThenStatus(t *testing.T, c *cluster.Cluster) {
	installCRDs(t, c.Config(), revision.Name)
	admin := administrator(t, c.Config())
	name := uniqueName(t)
	create(t, admin, revisionBased(makeIstio(name, "v1.24.0")))
	command := func(verb, kind, name string, more ...string) cliResult {
		t.Helper()
		return fairlead(t, append([]string{verb, kind, name, "--kubeconfig", c.Kubeconfig()}, more...)...)
	}

	planned := command("plan", "istio", name, "-o", "json")
	if planned.code != 3 {
		t.Errorf("plan: %+v", planned)
	}
	var plan passage.Plan
	if err := json.Unmarshal([]byte(planned.stdout), &plan); err != nil {
		t.Fatal(err)
	}
	if len(plan.Steps) != 1 || plan.Steps[0].Action != "create" || plan.Steps[0].Object.Name != name+"-v1-24-0" {
		t.Errorf("plan: %+v", plan)
	}
	for _, kind := range []string{"istios", "Istio", "istio.sailoperator.io", "istios.sailoperator.io", "istios.v1.sailoperator.io"} {
		if got := command("plan", kind, name, "-o", "json"); got != planned {
			t.Errorf("plan %s: %+v", kind, got)
		}
	}
	var fromYAML passage.Plan
	if err := yaml.Unmarshal([]byte(command("plan", "istio", name, "-o", "yaml").stdout), &fromYAML); err != nil || fromYAML.Target != plan.Target {
		t.Errorf("plan -o yaml: %v", err)
	}
	before := command("status", "istio", name)
	if before.code != 3 || !strings.Contains(before.stdout, "The operator has not reported on the latest spec yet: is it running?") {
		t.Errorf("status without an operator: %+v", before)
	}

	startOperator(t, c.Kubeconfig(), onlyRevision...)
	reported(t, admin, name, "NamespaceNotFound")
	if got := command("plan", "istio", name); got.code != 0 || !strings.HasPrefix(got.stdout, "Nothing to do for Istio "+name) {
		t.Errorf("plan when done: %+v", got)
	}
	status := command("status", "istio", name)
	if status.code != 3 {
		t.Errorf("status: %+v", status)
	}
	// Long messages go over several lines.
	words := strings.Join(strings.Fields(status.stdout), " ")
	for _, want := range []string{"InProgress", "Reconciled", "NamespaceNotFound", "namespace istio-system does not exist"} {
		if !strings.Contains(words, want) {
			t.Errorf("status does not tell of %s:\n%s", want, status.stdout)
		}
	}
	for line := range strings.Lines(status.stdout) {
		if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 100 {
			t.Errorf("too wide: %s", line)
		}
	}
	var view struct {
		passage.View
		Reported   bool
		Conditions []struct{ Type string }
	}
	if err := json.Unmarshal([]byte(command("status", "istio", name, "-o", "json").stdout), &view); err != nil {
		t.Fatal(err)
	}
	if view.State != passage.InProgress || !view.Reported || len(view.Conditions) != 2 || view.Target != name+"-v1-24-0" {
		t.Errorf("status -o json: %+v", view)
	}
}

// restartWritesNothing starts an operator over Istios in every state that one can be in.
func restartWritesNothing(t *testing.T, c *cluster.Cluster) {
	admin := administrator(t, c.Config())
	first := startOperator(t, c.Kubeconfig(), onlyRevision...)
	first.leading(t)
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
		create(t, admin, istio)
	}
	for istio, state := range states {
		reported(t, admin, istio.Name, state)
	}
	if code := first.stop(t); code != 0 {
		t.Fatalf("ended with %d", code)
	}

	before := versions(t, admin, name)
	line := startRecorder(t, c.Config())
	token := install(t, c, revision.Name).token(t, "fairlead")
	again := startOperator(t, line.kubeconfigFor(t, token), append(onlyRevision, "--metrics-insecure-bind-address=127.0.0.1:0")...)
	again.leading(t)
	lookedAtAll(t, again, len(states))

	for _, c := range line.made(changes) {
		t.Errorf("with nothing to do, it wrote: %s", c)
	}
	if diff := cmp.Diff(before, versions(t, admin, name)); diff != "" {
		t.Errorf("versions went (-before +after):\n%s", diff)
	}
}

// lookedAtAll waits until an operator that has just begun to lead has looked at all that there was, and at so many Istios at
// least: its queues are filled before the first is looked at, and at which it looks last is not to be relied upon.
func lookedAtAll(t testing.TB, p *process, istios int) {
	t.Helper()
	address := p.address(t, "insecure metrics")
	wait.Until(t, func(context.Context) error {
		code, metrics := probe(t, address, "/metrics")
		if code != http.StatusOK || !strings.Contains(metrics, "fairlead_build_info{") {
			return fmt.Errorf("/metrics says %d: %.200s", code, metrics)
		}
		queued, looked := samples(t, metrics, "workqueue_adds_total"), samples(t, metrics, "controller_runtime_reconcile_total")
		if queued["istio"] < float64(istios) || queued["istiorevision"] == 0 {
			return fmt.Errorf("queued are %v", queued)
		}
		for controller, n := range queued {
			if looked[controller] != n {
				return fmt.Errorf("of %s, looked at %v of %v", controller, looked[controller], n)
			}
		}
		return nil
	})
}

var controllerLabel = regexp.MustCompile(`controller="([^"]*)"`)

// samples are the sums of a metric's samples by controller.
func samples(t testing.TB, metrics, name string) map[string]float64 {
	t.Helper()
	sums := map[string]float64{}
	for line := range strings.Lines(metrics) {
		controller := controllerLabel.FindStringSubmatch(line)
		if !strings.HasPrefix(line, name+"{") || controller == nil {
			continue
		}
		fields := strings.Fields(line)
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		sums[controller[1]] += value
	}
	return sums
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

// disturbedWrites disturbs the operator while it brings three Istios to where they belong: one from nothing, one from an
// older version in place, and one that cannot be helped. In full it disturbs every write.
func disturbedWrites(t *testing.T, c *cluster.Cluster) {
	installCRDs(t, c.Config(), revision.Name)
	admin := administrator(t, c.Config())
	const revisions = "istiorevisions.sailoperator.io"
	choose := faults.At(t, map[string][]faults.Action{
		revisions + " 1": {faults.CutAfter(), faults.InternalError()},
		revisions + " 2": {faults.CutBefore(), faults.Conflict()},
		"write -1":       {faults.CutAfter()},
	})
	if faults.Full() {
		often := faults.Sample(3, faults.To(revisions))
		choose = func(k int, writes faults.Log) []faults.Action {
			if often(k, writes) {
				return append(faults.Kills(), faults.InternalError(), faults.Conflict())
			}
			return faults.Kills()
		}
	}
	faults.DisturbWrites(t, faults.Scenario{
		Config:  c.Config(),
		Setup:   func(t testing.TB) faults.World { return threeIstios(t, admin, c.Config()) },
		Timeout: wait.Deadline(),
	}, choose)
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
		Run: harness.InProcessOperator(t, revision.Name),
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
	run := harness.InProcessOperator(t, revision.Name)
	go func() { ended <- run(ctx, config) }()
	wait.Until(t, until)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
