package workload

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// What follows has the lines of the test plan of the design's unit tests, by their names. Its first part, about the API,
// is tested against an API server in test/compatibility; version comparison is beside the gates.

// objects are the names of the steps of a kind that have a state.
func objects(plan passage.Plan, kind string, states ...passage.State) []string {
	found := []string{}
	for _, s := range plan.Steps {
		if s.Object.Kind == kind && slices.Contains(states, s.State) {
			found = append(found, s.Object.Namespace+"/"+s.Object.Name)
		}
	}
	return found
}

func TestWorkloadDiscovery(t *testing.T) {
	cases := map[string]struct {
		parts                   []part
		namespaces, deployments []string
	}{
		"List namespaces with istio.io/rev label matching old revision": {
			[]part{namespace("a", rev(old)), namespace("b", rev(oldest)), namespace("c", rev(target)), namespace("d", rev(foreign24)), namespace("e", "")},
			[]string{"/a", "/b"}, []string{},
		},
		"List namespaces with istio-injection=enabled for default revision": {
			[]part{inPlace, namespace("a", "istio-injection=enabled"), namespace("b", "istio-injection=disabled")},
			[]string{"/a"}, []string{},
		},
		"List deployments with pod template labels matching old revision": {
			[]part{
				namespace("a", ""), deploy("a/old", podLabels(rev(old)), runs(old, 2)), deploy("a/oldest", podLabels(rev(oldest)), runs(oldest, 2)),
				deploy("a/new", podLabels(rev(target)), runs(target, 2)), deploy("a/foreign", podLabels(rev(foreign24)), runs(foreign24, 2)),
			},
			[]string{}, []string{"a/old", "a/oldest"},
		},
		"List deployments by inspecting pod annotations for injected revision": {
			[]part{namespace("a", rev(target)), deploy("a/old", runs(old, 2)), deploy("a/half", runs(old, 1), runs(target, 1)), deploy("a/none", runs("", 2)), deploy("a/new", runs(target, 2))},
			[]string{}, []string{"a/half", "a/old"},
		},
		"Exclude namespaces/deployments already on target revision": {
			[]part{namespace("a", rev(target)), deploy("a/new", runs(target, 2)), namespace("b", ""), deploy("b/own", podLabels(rev(target)), runs(target, 2))},
			[]string{}, []string{},
		},
		"Handle empty clusters (no workloads found)": {nil, []string{}, []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := Plan(observed(tc.parts...), epoch)
			if diff := cmp.Diff(tc.namespaces, objects(plan, "Namespace", passage.Pending)); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.deployments, objects(plan, "Deployment", passage.Pending)); diff != "" {
				t.Errorf("Deployments (-want +got):\n%s", diff)
			}
			if len(plan.Steps) != len(tc.namespaces)+len(tc.deployments) {
				t.Errorf("others are there, too: %v", reported(plan))
			}
		})
	}
}

func TestBatchCalculation(t *testing.T) {
	batches := func(workloads int, size int32) int {
		return decide(observed(batchSize(size), namespace("shop", rev(target)), deployments(workloads, func(int) []option {
			return []option{runs(old, 2)}
		})), epoch).Batches
	}
	t.Run("Calculate correct number of batches given total workloads and batch size", func(t *testing.T) {
		for _, row := range []struct{ workloads, size, want int }{{10, 1, 10}, {10, 5, 2}, {47, 5, 10}, {200, 20, 10}} {
			if got := batches(row.workloads, int32(row.size)); got != row.want {
				t.Errorf("%d workloads in batches of %d: %d batches, want %d", row.workloads, row.size, got, row.want)
			}
		}
	})
	t.Run("Handle edge cases (0 workloads, workloads < batch size, workloads % batch size != 0)", func(t *testing.T) {
		for _, row := range []struct{ workloads, size, want int }{{0, 3, 0}, {1, 3, 1}, {2, 3, 1}, {3, 3, 1}, {4, 3, 2}, {10, 3, 4}} {
			if got := batches(row.workloads, int32(row.size)); got != row.want {
				t.Errorf("%d workloads in batches of %d: %d batches, want %d", row.workloads, row.size, got, row.want)
			}
		}
	})
	t.Run("Respect batch size configuration", func(t *testing.T) {
		o := observed(namespace("shop", rev(target)), deployments(10, func(int) []option { return []option{runs(old, 2)} }))
		if n := len(decide(o, epoch).Start); n != v1.DefaultBatchSize {
			t.Errorf("without a size, %d start", n)
		}
		for size := range int32(12) {
			batchSize(size + 1)(&o)
			if n := len(decide(o, epoch).Start); n != min(int(size)+1, 10) {
				t.Errorf("in batches of %d, %d start", size+1, n)
			}
		}
	})
}

func TestStatusUpdates(t *testing.T) {
	// Each line is told by a migration from its beginning to its end, in which each status that is written is looked at.
	statuses := func(t *testing.T, setup func(*cluster)) (all []v1.WorkloadMigrationStatus) {
		c := newCluster(t)
		c.onStatus = func(s *v1.WorkloadMigrationStatus) { all = append(all, *s) }
		c.settings(3, "10s")
		c.shop("a b c d")
		setup(c)
		c.upgradeOn(7, "v1.26.0")
		c.run(func() bool { return true }, 0)
		return all
	}
	fine := func(*cluster) {}
	broken := func(c *cluster) { c.deploy("shop/e", brokenOn(target)) }
	states := func(all []v1.WorkloadMigrationStatus) (seen []v1.WorkloadMigrationState) {
		for _, s := range all {
			if len(seen) == 0 || seen[len(seen)-1] != s.State {
				seen = append(seen, s.State)
			}
		}
		return seen
	}
	t.Run("State transitions (Idle → InProgress → Completed/Failed)", func(t *testing.T) {
		const idle, inProgress = v1.WorkloadMigrationStateIdle, v1.WorkloadMigrationStateInProgress
		if diff := cmp.Diff([]v1.WorkloadMigrationState{idle, inProgress, v1.WorkloadMigrationStateCompleted}, states(statuses(t, fine))); diff != "" {
			t.Errorf("all well (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]v1.WorkloadMigrationState{idle, inProgress, v1.WorkloadMigrationStateFailed}, states(statuses(t, broken))); diff != "" {
			t.Errorf("with a failure (-want +got):\n%s", diff)
		}
	})
	t.Run("Counter updates (totalWorkloads, migratedWorkloads, failedWorkloads)", func(t *testing.T) {
		all := statuses(t, broken)
		migrated, failed := int32(0), int32(0)
		for _, s := range all {
			if s.State == v1.WorkloadMigrationStateIdle {
				continue
			}
			if s.TotalWorkloads != 5 || s.MigratedWorkloads < migrated || s.FailedWorkloads < failed {
				t.Errorf("%+v after %d were migrated and %d failed", s, migrated, failed)
			}
			migrated, failed = s.MigratedWorkloads, s.FailedWorkloads
		}
		if migrated != 4 || failed != 1 {
			t.Errorf("%d migrated and %d failed in the end", migrated, failed)
		}
	})
	t.Run("Batch progress tracking (currentBatch, totalBatches)", func(t *testing.T) {
		var seen []string
		for _, s := range statuses(t, fine) {
			if s.Batched == nil {
				continue
			}
			if text := fmt.Sprintf("%d of %d", s.Batched.CurrentBatch, s.Batched.TotalBatches); !slices.Contains(seen, text) {
				seen = append(seen, text)
			}
		}
		if diff := cmp.Diff([]string{"0 of 2", "1 of 2", "2 of 2"}, seen); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
	t.Run("Failure array limited to 10 most recent entries", func(t *testing.T) {
		all := statuses(t, func(c *cluster) {
			for i := range 13 {
				c.deploy(fmt.Sprintf("shop/x%02d", i), brokenOn(target))
			}
		})
		last := all[len(all)-1]
		if last.FailedWorkloads != 13 || len(last.Failures) != 10 || last.Failures[0].Name != "x03" || last.Failures[9].Name != "x12" {
			t.Errorf("%d failed, of which %d are told: %v", last.FailedWorkloads, len(last.Failures), last.Failures)
		}
	})
	t.Run("Timestamps set correctly (startTime, completionTime)", func(t *testing.T) {
		for _, s := range statuses(t, fine) {
			started := s.StartTime != nil && s.StartTime.Time.Equal(at(12))
			completed := s.CompletionTime != nil && s.CompletionTime.After(s.StartTime.Time)
			switch s.State {
			case v1.WorkloadMigrationStateIdle:
				if s.StartTime != nil || s.CompletionTime != nil {
					t.Errorf("idle, and %+v", s)
				}
			case v1.WorkloadMigrationStateInProgress:
				if !started || s.CompletionTime != nil {
					t.Errorf("in progress, and %+v", s)
				}
			default:
				if !started || !completed {
					t.Errorf("completed, and %+v", s)
				}
			}
		}
	})
}

func TestMigrationLogic(t *testing.T) {
	c := newCluster(t)
	c.settings(10, "0s")
	c.tags = []v1.IstioRevisionTag{*makeTag("prod", "Istio/default", old), *makeTag("default", "Istio/default", old)}
	c.revisions = append(c.revisions, makeRevision("default-v1-20", "v1.20.0", "default"))
	c.namespace("labelled", rev(old)+",team=red")
	c.namespace("own", "")
	c.namespace("tagged", rev("prod"))
	c.namespace("injected", "istio-injection=enabled")
	for _, name := range []string{"labelled/a", "tagged/a", "injected/a"} {
		c.deploy(name)
	}
	c.deploy("own/a", labels(rev(old)+",app=a"))
	c.upgradeOn(0, "v1.26.0")
	c.run(func() bool { return true }, 0)

	label := func(name string) string { return labelsOf(c.namespaces[name].Labels) }
	template := func(name string) map[string]string { return c.apps[name].Spec.Template.Labels }
	restarted := func(name string) string { return c.apps[name].Spec.Template.Annotations[v1.AnnotationRestartedAt] }
	t.Run("Namespace label updates (add/update istio.io/rev or istio-injection)", func(t *testing.T) {
		if got, want := label("labelled"), "istio.io/rev=default-v1-26-0 team=red"; got != want {
			t.Errorf("update: %s, want %s", got, want)
		}
		// An istio-injection that means a revision, and no tag, is replaced.
		c := newCluster(t)
		c.revisions = append(c.revisions, makeRevision("default", "v1.23.0", "default"))
		c.namespace("shop", "istio-injection=enabled,team=red")
		c.deploy("shop/a")
		c.run(func() bool { return true }, 0)
		if got, want := labelsOf(c.namespaces["shop"].Labels), "istio.io/rev=default-v1-24-0 team=red"; got != want {
			t.Errorf("add: %s, want %s", got, want)
		}
		if on := c.apps["shop/a"].runsOn(); on != old {
			t.Errorf("its workload runs on %s", on)
		}
	})
	t.Run("Deployment pod template label updates", func(t *testing.T) {
		if diff := cmp.Diff(map[string]string{v1.LabelRevision: target, "app": "a"}, template("own/a")); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if at := restarted("own/a"); at != "" {
			t.Errorf("annotated as well: %s", at)
		}
	})
	t.Run("Restart annotation added (kubectl.kubernetes.io/restartedAt)", func(t *testing.T) {
		for _, name := range []string{"labelled/a", "tagged/a", "injected/a"} {
			at, err := time.Parse(time.RFC3339, restarted(name))
			if mark := markOn(c.apps[name].Deployment); err != nil || !at.Equal(mark.Started.Truncate(time.Second)) {
				t.Errorf("%s: restarted at %q", name, restarted(name))
			}
			if len(template(name)) > 0 {
				t.Errorf("%s: labels %v", name, template(name))
			}
		}
	})
	t.Run("Skip label updates when using IstioRevisionTag", func(t *testing.T) {
		if got := label("tagged"); got != rev("prod") {
			t.Errorf("tagged: %s", got)
		}
		if got := label("injected"); got != "istio-injection=enabled" {
			t.Errorf("injected: %s", got)
		}
	})
	for _, a := range c.apps {
		if a.runsOn() != target {
			t.Errorf("%s runs on %s", a.key(), a.runsOn())
		}
	}
}
