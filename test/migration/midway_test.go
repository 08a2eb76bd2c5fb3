package migration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/launch"
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
	m := w.newMesh(t, append([]func(*v1.Istio){inBatches(1, time.Hour, time.Minute)}, how...)...)
	c := &convoy{mesh: m, namespace: m.namespace(t, v1.LabelRevision, m.from)}
	for i := range 4 {
		c.all = append(c.all, makeDeployment(c.namespace, fmt.Sprintf("w%d", i)))
	}
	m.deploy(t, m.from, c.all...)
	c.seen = m.watch(t)
	m.set(t, version(newVersion))
	m.underway(t, 1)
	return c
}

// started are the names of those that have been restarted so far.
func (c *convoy) started(t testing.TB) []string {
	t.Helper()
	return c.seen.replay(t).starts
}

// hurry shortens the time between two workloads.
func hurry(istio *v1.Istio) {
	istio.Spec.UpdateStrategy.WorkloadMigration.Batched.DelayBetweenBatches = ptr.To[v1.Duration]("1s")
}

// arrives waits until the migration is over, and nothing was restarted twice or at the same time as another.
func (c *convoy) arrives(t testing.TB) *v1.WorkloadMigrationStatus {
	t.Helper()
	c.set(t, hurry)
	status := c.ends(t, c.to, v1.WorkloadMigrationStateCompleted)
	for _, b := range c.all {
		c.runs(t, b, c.to)
	}
	c.restartedOnce(t, c.all...)
	c.seen.proves(t, 1)
	if int(status.TotalWorkloads) != len(c.all) || status.MigratedWorkloads != status.TotalWorkloads {
		t.Errorf("in the end it says %+v, want %d of %d", status, len(c.all), len(c.all))
	}
	return status
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
	c.moving(t, func(status *v1.WorkloadMigrationStatus) error {
		if int(status.TotalWorkloads) != len(c.all) {
			return fmt.Errorf("it does not count %d workloads", len(c.all))
		}
		return nil
	})
	if diff := cmp.Diff(before, c.started(t)); diff != "" {
		t.Errorf("restarts: (-before +after)\n%s", diff)
	}
}

func (c *convoy) fairlead(t testing.TB, args ...string) {
	t.Helper()
	if r := launch.Command(t, c.Cluster, args...); r.Code != 0 {
		t.Fatalf("fairlead %s: %+v", strings.Join(args, " "), r)
	}
}

func TestPausedMidway(t *testing.T) {
	t.Parallel()
	c := theWorld(t).setOut(t)
	c.fairlead(t, "pause", "istio", c.istio.Name)
	want := "paused by the annotation fairlead.dev/paused; go on with `fairlead resume istio " + c.istio.Name + "`"
	if got := c.held(t, v1.ReasonPaused); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	c.told(t, c.istio, "Paused", want)
	c.standsStill(t, c.started(t))
	if status := c.istio.Status.WorkloadMigration; status.State != v1.WorkloadMigrationStateInProgress {
		t.Errorf("while paused, the status is %+v", status)
	}
	c.fairlead(t, "resume", "istio", c.istio.Name)
	c.arrives(t)
}

func TestStrategySwitchedOffMidway(t *testing.T) {
	t.Parallel()
	c := theWorld(t).setOut(t)
	var before *v1.WorkloadMigrationConfig
	c.set(t, func(istio *v1.Istio) {
		before = istio.Spec.UpdateStrategy.WorkloadMigration
		istio.Spec.UpdateStrategy.WorkloadMigration = nil
	})
	c.held(t, v1.ReasonMigrationDisabled)
	until(t, c.world, c.istio, func(istio *v1.Istio) error {
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

	c.set(t, func(istio *v1.Istio) { istio.Spec.UpdateStrategy.WorkloadMigration = before }, hurry)
	c.ends(t, c.to, v1.WorkloadMigrationStateCompleted)
	for _, b := range c.all {
		c.runs(t, b, c.to)
	}
	c.restartedOnce(t, c.all...)
	c.seen.proves(t, 1)
}

func TestMaxVersionLoweredMidway(t *testing.T) {
	t.Parallel()
	c := theWorld(t).setOut(t, maxVersion("1.26.0"))
	c.set(t, maxVersion("1.25.999"))
	c.held(t, v1.ReasonMaxVersionExceeded)
	c.standsStill(t, c.started(t))
	c.set(t, maxVersion("1.26.0"))
	c.arrives(t)
}

func TestNewWorkloadMidway(t *testing.T) {
	t.Parallel()
	c := theWorld(t).setOut(t)
	late := c.another(t, "late")
	c.arrives(t)
	if started := c.started(t); !slices.Contains(started, late.d.Name) {
		t.Errorf("restarted were %v", started)
	}
}

// What is on its way arrives, and then everybody goes back.
func TestNewTargetMidway(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newMesh(t, inBatches(1, time.Second, time.Minute))
	namespace := m.namespace(t, v1.LabelRevision, m.from)
	var all []builder
	for i := range 4 {
		all = append(all, makeDeployment(namespace, fmt.Sprintf("w%d", i)).readyAfter("3s"))
	}
	m.deploy(t, m.from, all...)
	seen, statuses := m.watch(t), m.statuses(t)
	m.set(t, version(newVersion))
	until(t, m.world, all[0].d, func(d *appsv1.Deployment) error {
		if markOf(t, d).Target != m.to {
			return errors.New("it is not being moved")
		}
		return nil
	})
	m.set(t, version(oldVersion))
	want := "Deployment " + namespace + "/w0 is on its way to " + m.to + ", and is waited for"
	if got := m.held(t, v1.ReasonBatchSettles); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}

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
	seen.proves(t, 1)
	if diff := cmp.Diff([]v1.WorkloadMigrationState{"InProgress", "Completed"}, statuses.states(t)); diff != "" {
		t.Errorf("states: (-want +got)\n%s", diff)
	}

	t.Log("and there again")
	m.set(t, version(newVersion), inBatches(4, 0, time.Minute))
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
	m := theWorld(t).newMesh(t, inBatches(1, 0, time.Minute))
	reverted := makeDeployment(m.namespace(t), "a-reverted").podLabel(v1.LabelRevision, m.from)
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
	m.told(t, reverted.d, "MigrationFailed", "moving to "+m.to+" failed: "+want)

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

// gitOps puts the label of a Deployment back as soon as it has changed, until the test ends.
func (m *mesh) gitOps(t *testing.T, b builder, revision string) {
	t.Helper()
	changes := follow[*appsv1.Deployment](t, m.world, &appsv1.DeploymentList{},
		client.InNamespace(b.d.Namespace), client.MatchingFields{"metadata.name": b.d.Name})
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"labels":{%q:%q}}}}}`, v1.LabelRevision, revision)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			events := changes.sofar(t)
			if n := len(events); n > 0 && events[n-1].Object.Spec.Template.Labels[v1.LabelRevision] != revision {
				if err := m.Patch(ctx, b.d.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch)); err != nil && ctx.Err() == nil {
					t.Errorf("put the label back: %v", err)
				}
			}
		}
	})
	t.Cleanup(func() {
		stop()
		done.Wait()
	})
}
