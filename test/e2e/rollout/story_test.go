package rollout_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// sample is a copy of a file of docs/samples/rollout, for the namespace of the environment.
func (e *environment) sample(t testing.TB, name string) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "samples", "rollout", name))
	if err != nil {
		t.Fatal(err)
	}
	return manifest(t, strings.Replace(string(text), "namespace: shop", "namespace: "+e.namespace, 1))
}

// apply does what `kubectl apply --server-side -f` does.
func (e *environment) apply(t testing.TB, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := chart.Decode(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := e.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStoryRollout follows the samples of the documentation: a first deploy, a change that needs no rollout, an upgrade,
// and one that a person promotes.
func TestStoryRollout(t *testing.T) {
	t.Parallel()
	e := theWorld(t).namespaced(t, "production")
	expect := func(code int, reported string, verb string, args ...string) {
		t.Helper()
		result := e.command(t, verb, args...)
		if result.Code != code || !strings.Contains(result.Stdout+result.Stderr, reported) {
			t.Errorf("%s ended with %d, want %d and %q:\n%s%s", verb, result.Code, code, reported, result.Stdout, result.Stderr)
		}
	}

	e.apply(t, e.sample(t, "production.yaml"))
	first := e.serves(t, 1, "v26.1.0")
	if id := first.Status.ResourceID; len(id) != 10 {
		t.Errorf("resourceId %q", id)
	}
	if got := string(first.Status.EnvironmentID); got != string(first.UID) {
		t.Errorf("environmentId %s, want what follows from the UID %s", got, first.UID)
	}
	if first.Status.LastCompletedRolloutHash == "" || first.Status.LastCompletedRolloutHash != first.Status.RequestedRolloutHash {
		t.Errorf("hashes: %+v", first.Status)
	}
	expect(0, "there is nothing to promote: generation 1 serves the current spec", "promote", "--yes")
	expect(0, "no rollout is in progress", "abort", "--yes")

	// One more balancerd needs no rollout.
	set := e.set(t, 1)
	if p := e.plan(t, 3, "-f", e.sample(t, "wider.yaml")); p.Rollout.Verdict != "no rollout: only balancerdReplicas changed" {
		t.Errorf("plan says %q", p.Rollout.Verdict)
	}
	e.apply(t, e.sample(t, "wider.yaml"))
	wait.Until(t, func(ctx context.Context) error {
		var balancerd appsv1.Deployment
		if err := e.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: "mz" + first.Status.ResourceID + "-balancerd"}, &balancerd); err != nil {
			return err
		}
		if got := ptr.Deref(balancerd.Spec.Replicas, 1); got != 3 {
			return fmt.Errorf("balancerd has %d replicas", got)
		}
		return nil
	})
	wider := e.serves(t, 1, "v26.1.0")
	if now := e.set(t, 1); now.UID != set.UID || now.Generation != set.Generation {
		t.Error("what serves was touched")
	}
	if a, b := condition(first), condition(wider); !a.LastTransitionTime.Equal(&b.LastTransitionTime) {
		t.Errorf("the transition was at %s, and now at %s", a.LastTransitionTime, b.LastTransitionTime)
	}

	// Another image does.
	if p := e.plan(t, 3, "-f", e.sample(t, "upgrade.yaml")); p.Rollout.Verdict != "rollout: generation 2 follows generation 1, because environmentdImageRef changed" {
		t.Errorf("plan says %q", p.Rollout.Verdict)
	}
	e.daemon(2).Behave(environmentd.Manner{CatchesUp: true})
	untouched := e.watch(t)
	e.apply(t, e.sample(t, "upgrade.yaml"))
	e.meets(t, tells(v1alpha2.ReasonApplying, "environmentd has not caught up yet"))
	followed := e.begin(t, "watch", "--wait")
	shows(t, followed, "environmentd of generation 2: Initializing\n")
	untouched.check(t)
	e.daemon(2).CatchUp()
	result := followed.Wait()
	for _, line := range []string{
		"Materialize " + e.namespace + "/production to generation 2: InProgress\n",
		"Pod " + e.namespace + "/" + e.name(first, 2) + "-0: Running, ready\n",
		"To return to generation 1: fairlead abort mzs production -n " + e.namespace + "\n",
		"Applied: generation 2 serves the current spec\n",
	} {
		if !strings.Contains(result.Stdout, line) {
			t.Errorf("nowhere is %q:\n%s", line, result.Stdout)
		}
	}
	if result.Code != 0 {
		t.Errorf("watch ended with %d: %s", result.Code, result.Stderr)
	}
	second := e.serves(t, 2, "v26.2.0")
	untouched.check(t)
	if second.Status.LastCompletedRolloutHash == first.Status.LastCompletedRolloutHash {
		t.Error("two specs have one hash")
	}
	if second.Status.ResourceID != first.Status.ResourceID {
		t.Error("the resourceId has changed")
	}
	for generation := range int64(2) {
		if diff := cmp.Diff([]string{"promote"}, e.daemon(generation+1).Asked()); diff != "" {
			t.Errorf("generation %d: %s", generation+1, diff)
		}
	}
	expect(0, "Phase:      Applied\nGeneration: 2\n", "status")

	// The next one is promoted by a person.
	untouched = e.watch(t)
	e.apply(t, e.sample(t, "manual.yaml"))
	e.says(t, v1alpha2.ReasonReadyToPromote)
	expect(3, "Phase:      ReadyToPromote\nGeneration: 2 -> 3\n", "status")
	expect(3, "approve", "plan")
	expect(2, "there is no terminal to ask at: give --yes", "promote")
	untouched.check(t)
	expect(0, "generation 3 becomes active in place of generation 2", "promote", "--yes")
	expect(0, "Applied: generation 3 serves the current spec", "watch", "--wait")
	e.serves(t, 3, "v26.3.0")
	untouched.check(t)
	expect(0, "there is nothing to promote", "promote", "--yes")
	e.Operator.CompareMetrics(t, "rollout")
	harness.Traces().HasStages(t, "rollout")
}

// begin is a command of the owner of the environment that goes on for a while.
func (e *environment) begin(t testing.TB, verb string, args ...string) *harness.RunningCommand {
	t.Helper()
	return harness.StartCommand(t, e.Cluster, append([]string{verb, "mzs", e.resource, "-n", e.namespace}, args...)...)
}

// shows waits until a command has printed something.
func shows(t testing.TB, command *harness.RunningCommand, text string) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		if got := command.Stdout.Since(0); !strings.Contains(got, text) {
			return fmt.Errorf("nowhere is %q:\n%s%s", text, got, command.Stderr.Since(0))
		}
		return nil
	})
}

// TestStoryDifficultEnvironmentd: promotion survives whatever the next generation does instead of taking over, what serves
// is left alone until that leads, and an environmentd that hangs keeps no other environment waiting.
func TestStoryDifficultEnvironmentd(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.deployed(t)
	next := e.daemon(2)
	next.Behave(environmentd.Manner{Resets: true})
	untouched := e.watch(t)
	e.edit(t, image("v2"))
	e.meets(t, tells(v1alpha2.ReasonApplying, "environmentd does not answer: connection reset"))
	next.Behave(environmentd.Manner{Holds: "status"})
	e.meets(t, holds(2, "status", 1))
	w.deployed(t)
	e.meets(t, holds(2, "status", 1), tells(v1alpha2.ReasonApplying, ""))
	next.Behave(environmentd.Manner{Refuses: "not on a Friday"})
	e.meets(t, tells(v1alpha2.ReasonPromoting, "environmentd refuses: not on a Friday"), asked(2, 2))
	next.Behave(environmentd.Manner{Lingers: true})
	e.meets(t, tells(v1alpha2.ReasonPromoting, "environmentd is taking over leadership"))
	forgotten := len(next.Asked())
	next.Behave(environmentd.Manner{Lingers: true, CatchesUp: true})
	next.Restart()
	e.meets(t, tells(v1alpha2.ReasonPromoting, "environmentd has restarted and is not ready yet"))
	untouched.check(t)
	next.Behave(environmentd.Manner{})
	e.serves(t, 2, "v2")
	untouched.check(t)
	if got := len(next.Asked()); got <= forgotten {
		t.Errorf("it forgot, and was asked %d times before and %d times in all", forgotten, got)
	}
}

// TestStoryOperatorKilled kills the operator with three environments on their way: before it has asked the next generation
// to take over, before it has heard that this was done, and while that catches up, for longer than it may. It is not
// parallel to other tests, which use the same operator.
func TestStoryOperatorKilled(t *testing.T) {
	w := theWorld(t)
	unasked, unheard, late := w.environment(t), w.environment(t), w.environment(t)
	all := map[*environment]*watcher{unasked: nil, unheard: nil, late: nil}
	unasked.daemon(2).Behave(environmentd.Manner{Holds: "promote"})
	unheard.daemon(2).Behave(environmentd.Manner{Withholds: "promote"})
	late.daemon(2).Behave(environmentd.Manner{CatchesUp: true})
	for e := range all {
		e.serves(t, 1, "v1")
		all[e] = e.watch(t)
	}
	late.edit(t, image("v2"))
	late.meets(t, tells(v1alpha2.ReasonApplying, "environmentd has not caught up yet"))
	// These two come last, for the operator gives up a request that is held for two minutes.
	unasked.edit(t, image("v2"))
	unheard.edit(t, image("v2"))
	unasked.meets(t, holds(2, "promote", 1), tells(v1alpha2.ReasonPromoting, ""))
	unheard.meets(t, holds(2, "promote", 1), tells(v1alpha2.ReasonPromoting, ""))

	w.Operator.Kill()
	unasked.meets(t, holds(2, "promote", 0))
	unheard.meets(t, holds(2, "promote", 0))
	if asked := unasked.daemon(2).Asked(); len(asked) > 0 {
		t.Fatalf("it was asked: %v", asked)
	}
	if status := unheard.daemon(2).Status(); status != environmentd.IsLeader {
		t.Fatalf("it is %s", status)
	}
	for e := range all {
		e.daemon(2).Behave(environmentd.Manner{CatchesUp: e == late})
	}
	unasked.daemon(3).Behave(environmentd.Manner{CatchesUp: true})
	unasked.edit(t, image("v3"))
	late.lateBy(t, 25*time.Hour)
	requested := late.now(t).Status.RolloutRequestedAt
	w.restart(t)

	unheard.serves(t, 2, "v2")
	unasked.meets(t, tells(v1alpha2.ReasonApplying, "environmentd has not caught up yet"))
	if s := unasked.now(t).Status; s.ActiveGeneration != 2 || s.LastCompletedRolloutEnvironmentdImageRef != "materialize/environmentd:v2" {
		t.Errorf("completed is not what was promoted: %+v", s)
	}
	unasked.daemon(3).CatchUp()
	unasked.serves(t, 3, "v3")
	if m := late.says(t, v1alpha2.ReasonRolloutTimeout); !m.Status.RolloutRequestedAt.Equal(requested) {
		t.Error("a restart was taken for a request")
	}
	for e, untouched := range all {
		untouched.check(t)
		want := []string{"promote"}
		if e == late {
			want = nil
		}
		if diff := cmp.Diff(want, e.daemon(2).Asked()); diff != "" {
			t.Error(diff)
		}
	}
}
