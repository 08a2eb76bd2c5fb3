package workload

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// refusedOn is a workload whose pods the injector of a revision refuses to admit.
func refusedOn(revision string) func(*app) { return func(a *app) { a.refusedOn = revision } }

// rollback moves four workloads, two at a time, to a revision that is ready and whose injector refuses every pod, and then
// back.
func rollback(c *cluster, back int) {
	c.settings(2, "10s").ReadinessTimeout = ptr.To[v1.Duration]("5m")
	c.namespace("own", "")
	c.namespace("shop", rev(old))
	c.deploy("own/a", labels(rev(old)), refusedOn(target))
	for _, name := range []string{"shop/b", "shop/c", "shop/d"} {
		c.deploy(name, refusedOn(target))
	}
	c.upgradeOn(0, "v1.26.0")
	c.upgradeOn(back, "v1.24.0")
}

// TestRollbackIsUrgent: the labels of namespaces move back at once, and so does what is underway. Nothing is restarted
// that need not be.
func TestRollbackIsUrgent(t *testing.T) {
	c := newCluster(t)
	rollback(c, 60)
	var labelled, restored time.Duration
	c.onMove = func(a *app, _ *appsv1.Deployment, mark *Mark) {
		if mark.Target == old && a.key() == "own/a" {
			restored = c.now.Sub(epoch)
		}
	}
	c.tell = func(format string, args ...any) {
		if fmt.Sprintf(format, args...) == "relabel  namespace shop: "+rev(old) {
			labelled = c.now.Sub(epoch)
		}
	}
	c.run(func() bool { return true }, 0)
	if labelled != 60*time.Second {
		t.Errorf("namespace shop selects %s again after %s, want 1m0s", old, labelled)
	}
	if restored > 62*time.Second || restored == 0 {
		t.Errorf("own/a moves back after %s", restored)
	}
	for _, name := range []string{"shop/b", "shop/c", "shop/d"} {
		if n := c.restarts[name+" to "+old]; n > 0 {
			t.Errorf("%s had no pod on %s, and was restarted", name, target)
		}
	}
	status := c.istio.Status.WorkloadMigration
	if status.State != v1.WorkloadMigrationStateCompleted || status.TargetRevision != old || status.TotalWorkloads != 2 || status.MigratedWorkloads != 2 {
		t.Errorf("status %+v", status)
	}
}

// TestCrashDuringRollback kills the operator after its k-th write, for every k of a migration there and back. Everything ends
// on the old revision, and nothing is restarted twice for it.
func TestCrashDuringRollback(t *testing.T) {
	for name, setup := range map[string]func(*cluster){
		"the injector refuses": func(c *cluster) { rollback(c, 60) },
		"halfway": func(c *cluster) {
			c.settings(2, "10s")
			c.namespace("own", "")
			c.deploy("own/a", labels(rev(old)))
			c.shop("b c d e")
			c.upgradeOn(0, "v1.26.0")
			c.upgradeOn(45, "v1.24.0")
		},
		"twice": func(c *cluster) {
			c.settings(3, "10s")
			c.shop("a b c d")
			c.upgradeOn(0, "v1.26.0")
			c.upgradeOn(12, "v1.27.0")
			c.upgradeOn(25, "v1.24.0")
		},
	} {
		run := func(t *testing.T, downtime time.Duration, dies ...int) *cluster {
			c := newCluster(t)
			setup(c)
			c.run(func() bool {
				if len(dies) > 0 && c.writes == dies[0] {
					dies = dies[1:]
					return false
				}
				return true
			}, downtime)
			return c
		}
		t.Run(name, func(t *testing.T) {
			writes := run(t, 0).writes
			for _, downtime := range []time.Duration{0, 10 * time.Second, time.Minute, time.Hour} {
				for k := range writes {
					c := run(t, downtime, k, k+1)
					status := c.istio.Status.WorkloadMigration
					if status.State == v1.WorkloadMigrationStateInProgress || status.TargetRevision != old || status.FailedWorkloads > 0 {
						t.Errorf("down for %s after write %d: status %+v", downtime, k, status)
					}
					for _, a := range c.sorted() {
						if a.runsOn() != old {
							t.Errorf("down for %s after write %d: %s runs on %s", downtime, k, a.key(), a.runsOn())
						}
					}
					for what, n := range c.restarts {
						if n > 1 {
							t.Errorf("down for %s after write %d: %s is restarted %d times", downtime, k, what, n)
						}
					}
					if got := c.namespaces["shop"].Labels[v1.LabelRevision]; got != old {
						t.Errorf("down for %s after write %d: namespace shop selects %s", downtime, k, got)
					}
					if t.Failed() {
						return
					}
				}
			}
		})
	}
}

// TestDisturbedSteps has what becomes of a Deployment that was being moved to another revision when the target changed.
func TestDisturbedSteps(t *testing.T) {
	toOldest := func(m *Mark) { m.Target, m.From = oldest, target }
	rolling := says("1 of 3 new, 2 ready")
	cases := map[string]struct {
		namespace string
		cart      []option
		want      string
	}{
		"has pods on the abandoned revision": {
			rev(target), []option{runs(oldest, 1), runs(target, 2), rolling, moved(30, 2, toOldest)},
			"Pending restart, batch 1, TargetChanged: was being moved to default-v1-22-0 when the target changed",
		},
		"has none": {
			rev(target), []option{runs(target, 2), says("0 of 2 new, 2 ready"), moved(30, 2, toOldest)},
			"Pending continue, batch 1, TargetChanged: was being moved to default-v1-22-0 when the target changed",
		},
		"has none, and the label of its namespace is about to move": {
			rev(oldest), []option{runs(target, 2), says("0 of 2 new, 2 ready"), moved(30, 2, toOldest)},
			"Pending continue, batch 1, TargetChanged: was being moved to default-v1-22-0 when the target changed",
		},
		"has no pods at all": {
			rev(target), []option{says("0 of 0 new, 0 ready"), moved(30, 2, toOldest)},
			"Pending continue, batch 1, TargetChanged: was being moved to default-v1-22-0 when the target changed",
		},
		"has pods without a sidecar": {
			rev(target), []option{runs("", 1), runs(target, 2), rolling, moved(30, 2, toOldest)},
			"Pending restart, batch 1, TargetChanged: was being moved to default-v1-22-0 when the target changed",
		},
		"has a label of its own": {
			"", []option{podLabels(rev(oldest)), runs(target, 2), says("0 of 2 new, 2 ready"), moved(30, 2, toOldest)},
			"Pending relabel, batch 1, TargetChanged: was being moved to default-v1-22-0 when the target changed",
		},
		"is to be skipped by now": {
			rev(target), []option{runs(oldest, 1), runs(target, 2), rolling, moved(30, 2, toOldest), skipped},
			"Skipped stay, SkippedByAnnotation: annotation sailoperator.io/skip-migration is set, but new pods of it start on the target revision",
		},
		"goes on": {
			rev(target), []option{runs(target, 2), says("1 of 3 new, 2 ready"), moved(50, 1, goesOn)},
			"Running continue, batch 1, 0/2 ready, Restarting: its pods are being replaced",
		},
		"goes on, and a pod has come up on the abandoned revision after all": {
			rev(target), []option{runs(target, 2), runs(oldest, 1), rolling, moved(50, 1, goesOn)},
			"Pending restart, batch 1, TargetChanged: was being moved to default-v1-22-0 when the target changed",
		},
		"went on to its end": {
			rev(target), []option{arrived(55), moved(50, 1, goesOn)},
			"Done continue, batch 1, 2/2 ready, until 56s, RunsOnTarget: its pods run on default-v1-26-0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observed(migrating, namespace("shop", tc.namespace), deploy("shop/cart", append([]option{since("ReplicaSetUpdated", 31)}, tc.cart...)...))
			got := ""
			for _, step := range decide(o, at(60)).Plan.Steps {
				if step.Object.Kind == kindDeployment {
					got = tellStep(step)
				}
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func goesOn(m *Mark) { m.Action, m.From = ActionContinue, oldest }
