package workload_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// convoy is a migration of four workloads, one by one, of which the first has arrived. The next would not start for a long
// time, in which anything can happen.
type convoy struct {
	*mesh
	namespace string
	all       []builder
	seen      watcher
}

func (w *world) setOut(t *testing.T, how ...func(*v1.Istio)) *convoy {
	t.Helper()
	m := w.newMesh(t, append([]func(*v1.Istio){inBatches(1, never)}, how...)...)
	c := &convoy{mesh: m, namespace: m.namespace(t, v1.LabelRevision, m.from)}
	for i := range 4 {
		c.all = append(c.all, makeDeployment(c.namespace, fmt.Sprintf("w%d", i)))
	}
	m.deploy(t, m.from, c.all...)
	c.seen = m.watch(t)
	m.set(t, version(newVersion))
	m.runs(t, c.all[0], m.to)
	return c
}

// started are the names of those that have been restarted so far.
func (c *convoy) started(t testing.TB) []string {
	t.Helper()
	return c.seen.replay(t).starts
}

// hurry leaves no time between two workloads.
func hurry(istio *v1.Istio) {
	istio.Spec.UpdateStrategy.WorkloadMigration.Batched.DelayBetweenBatches = ptr.To[v1.Duration]("0s")
}

// arrives waits until the migration is over, and nothing was restarted twice or at the same time as another.
func (c *convoy) arrives(t testing.TB) {
	t.Helper()
	c.set(t, hurry)
	c.ends(t, c.to, v1.WorkloadMigrationStateCompleted)
	for _, b := range c.all {
		c.runs(t, b, c.to)
	}
	c.restartedOnce(t, c.all...)
	c.seen.proves(t, 1)
}

// another is a workload that nobody knew of when the migration began.
func (c *convoy) another(t testing.TB, name string) builder {
	t.Helper()
	b := makeDeployment(c.namespace, name).podLabel(v1.LabelRevision, c.from)
	// Its namespace chooses nothing.
	b.d.Namespace = c.mesh.namespace(t)
	c.deploy(t, c.from, b)
	c.all = append(c.all, b)
	return b
}

// standsStill checks that nothing starts although the operator looks: it takes notice of another workload.
func (c *convoy) standsStill(t *testing.T, before []string) {
	t.Helper()
	c.another(t, "meanwhile")
	c.counts(t)
	if diff := cmp.Diff(before, c.started(t)); diff != "" {
		t.Errorf("restarts: (-before +after)\n%s", diff)
	}
}

// counts waits until the status counts all workloads.
func (c *convoy) counts(t testing.TB) {
	t.Helper()
	c.moving(t, func(status *v1.WorkloadMigrationStatus) error {
		if int(status.TotalWorkloads) != len(c.all) {
			return fmt.Errorf("it does not count %d workloads", len(c.all))
		}
		return nil
	})
}

func (c *convoy) fairlead(t testing.TB, args ...string) {
	t.Helper()
	if r := harness.RunCommand(t, c.Cluster, args...); r.Code != 0 {
		t.Fatalf("fairlead %s: %+v", strings.Join(args, " "), r)
	}
}

// Whatever changes in the middle of a migration, nothing is restarted twice, and nothing while it must not be. The golden
// files of internal/revision/workload have one story for each change.
func TestChangesDuringMigration(t *testing.T) {
	t.Parallel()
	c := theWorld(t).setOut(t, maxVersion(newVersion))
	t.Run("Paused and resumed", func(t *testing.T) {
		c.fairlead(t, "pause", "istio", c.istio.Name)
		want := "paused by annotation fairlead.dev/paused; resume with `fairlead resume istio " + c.istio.Name + "`"
		if got := c.held(t, v1.ReasonPaused); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		c.reported(t, c.istio, "Paused", want)
		c.standsStill(t, c.started(t))
		if status := c.istio.Status.WorkloadMigration; status.State != v1.WorkloadMigrationStateInProgress {
			t.Errorf("while paused, the status is %+v", status)
		}
		c.fairlead(t, "resume", "istio", c.istio.Name)
	})
	t.Run("maxVersion lowered and raised", func(t *testing.T) {
		c.set(t, maxVersion("1.25.999"))
		c.held(t, v1.ReasonMaxVersionExceeded)
		c.standsStill(t, c.started(t))
		c.set(t, maxVersion(newVersion))
	})
	t.Run("Deployment deleted during migration, handle gracefully", func(t *testing.T) {
		// The last has yet to come; the first has arrived.
		for _, b := range []builder{c.all[3], c.all[0]} {
			if err := c.Delete(t.Context(), b.d); err != nil {
				t.Fatal(err)
			}
		}
		c.all = slices.Concat(c.all[1:3], c.all[4:])
		c.counts(t)
	})
	t.Run("Strategy switched off and on", func(t *testing.T) {
		var before *v1.WorkloadMigrationConfig
		c.set(t, func(istio *v1.Istio) {
			before = istio.Spec.UpdateStrategy.WorkloadMigration
			istio.Spec.UpdateStrategy.WorkloadMigration = nil
		})
		c.held(t, v1.ReasonMigrationDisabled)
		harness.WaitFor(t, c.world, c.istio, func(istio *v1.Istio) error {
			if status := istio.Status.WorkloadMigration; status != nil {
				return fmt.Errorf("it is switched off and what had begun is seen through, and still the status says %+v", status)
			}
			return nil
		})
		started := c.started(t)

		t.Log("the operator looks again")
		c.set(t, grace(time.Minute))
		c.held(t, v1.ReasonMigrationDisabled)
		if diff := cmp.Diff(started, c.started(t)); diff != "" {
			t.Errorf("restarts: (-before +after)\n%s", diff)
		}
		c.set(t, func(istio *v1.Istio) { istio.Spec.UpdateStrategy.WorkloadMigration = before })
	})
	c.arrives(t)
	if started := c.started(t); len(started) != 5 || !slices.Contains(started, "meanwhile") {
		t.Errorf("restarted were %v", started)
	}
}

// What is on its way never arrives, and goes back at once.
func TestNewTargetDuringMigration(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newMesh(t, inBatches(1, 0))
	namespace := m.namespace(t, v1.LabelRevision, m.from)
	var all []builder
	for i := range 4 {
		all = append(all, makeDeployment(namespace, fmt.Sprintf("w%d", i)).heldOn(m.to))
	}
	m.deploy(t, m.from, all...)
	seen, statuses := m.watch(t), m.statuses(t)
	m.set(t, version(newVersion))
	m.moves(t, all[0], m.to)
	m.hasPodsOn(t, all[0], m.to)
	m.set(t, version(oldVersion))

	status := m.ends(t, m.from, v1.WorkloadMigrationStateCompleted)
	if status.MigratedWorkloads != 1 || status.TotalWorkloads != 1 {
		t.Errorf("going back, it says %+v", status)
	}
	for i, b := range all {
		m.runs(t, b, m.from)
		if got, want := m.rollouts(t, b), map[bool]string{true: "3", false: "1"}[i == 0]; got != want {
			t.Errorf("%s is at rollout %s, want %s", b.d.Name, got, want)
		}
	}
	if got := m.labels(t, namespace)[v1.LabelRevision]; got != m.from {
		t.Errorf("the namespace has %s", got)
	}
	r := seen.replay(t)
	if len(r.shortages) > 0 || len(r.interrupted) != 1 || r.most != 1 {
		t.Errorf("want one rollout that is interrupted by the way back: %v; %v; %d at once", r.shortages, r.interrupted, r.most)
	}
	if diff := cmp.Diff([]v1.WorkloadMigrationState{"InProgress", "Completed"}, statuses.states(t)); diff != "" {
		t.Errorf("states: (-want +got)\n%s", diff)
	}

	t.Log("and there again")
	m.release(t, all...)
	seen = m.watch(t)
	m.set(t, version(newVersion), inBatches(4, 0))
	if status := m.ends(t, m.to, v1.WorkloadMigrationStateCompleted); status.TotalWorkloads != 4 || status.MigratedWorkloads != 4 {
		t.Errorf("it says %+v", status)
	}
	for _, b := range all {
		m.runs(t, b, m.to)
	}
	seen.proves(t, 4)
}

// Somebody sees to it that a Deployment stays as it is in Git. It is not fought over.
func TestLabelRevertedByOthers(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newMesh(t, inBatches(1, 0))
	// Its new pods do not become ready before somebody has put the label back.
	reverted := makeDeployment(m.namespace(t), "a-reverted").podLabel(v1.LabelRevision, m.from).heldOn(m.to)
	other := makeDeployment(m.namespace(t, v1.LabelRevision, m.from), "b-other")
	m.deploy(t, m.from, reverted, other)
	seen := m.watch(t)
	m.gitOps(t, reverted, m.from)
	m.set(t, version(newVersion))

	status := m.ends(t, m.to, v1.WorkloadMigrationStateFailed)
	want := "its pods came up with " + m.from + " instead of " + m.to
	if len(status.Failures) != 1 || status.Failures[0].Name != reverted.d.Name || status.Failures[0].Reason != want || status.MigratedWorkloads != 1 {
		t.Errorf("it says %+v, want %q", status, want)
	}
	m.runs(t, other, m.to)
	m.runs(t, reverted, m.from)
	m.reported(t, reverted.d, "MigrationFailed", "moving to "+m.to+" failed: "+want)

	t.Log("the operator looks again, and leaves it alone")
	m.set(t, grace(time.Minute))
	m.ends(t, m.to, v1.WorkloadMigrationStateFailed)
	times := 0
	for _, name := range seen.replay(t).starts {
		if name == reverted.d.Name {
			times++
		}
	}
	if times != 2 {
		t.Errorf("its template was changed %d times, want once there and once back", times)
	}
}

// gitOps puts the label of a Deployment back whenever it has changed and new pods have come, until the test ends.
func (m *mesh) gitOps(t *testing.T, b builder, revision string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"labels":{%q:%q}}}}}`, v1.LabelRevision, revision)
		for ctx.Err() == nil {
			// It never ends by itself but for the end of the test.
			_ = wait.Try(ctx, func(ctx context.Context) error {
				live := b.d.DeepCopy()
				if err := m.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
					return err
				}
				// A Deployment that never rolled out would be given up only when its time is over.
				rolls := live.Status.ObservedGeneration >= live.Generation && live.Status.UpdatedReplicas > 0
				if rolls && live.Spec.Template.Labels[v1.LabelRevision] != revision {
					if err := m.Patch(ctx, live, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
						return err
					}
				}
				return fmt.Errorf("the label is %s", revision)
			})
		}
	})
	t.Cleanup(func() {
		stop()
		done.Wait()
	})
}
