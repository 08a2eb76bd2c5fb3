package workload

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

var batchEvent = regexp.MustCompile(`Batch(Started|Ended): batch \d+`)

// TestCrashAtEveryWrite kills the operator after its k-th write, for every k of a migration of twelve workloads, and again
// right after it came back. It must end where an undisturbed one ends, with nothing restarted twice and no failure
// forgotten.
func TestCrashAtEveryWrite(t *testing.T) {
	setup := func(c *cluster) {
		settings := c.settings(3, "30s")
		settings.ReadinessTimeout, settings.WorkloadKinds = ptr.To[v1.Duration]("2m"), allKinds
		c.tags = []v1.IstioRevisionTag{*makeTag("prod", "Istio/default", old)}
		c.namespace("own", "")
		c.namespace("web", rev("prod"))
		c.shop("a b c")
		c.deploy("shop/broken", brokenOn(target), deadline(0))
		c.deploy("shop/undated", deadline(0))
		c.deploy("shop/skipped", notes(v1.AnnotationSkipMigration, "true"), untouchable)
		c.deploy("own/idle", labels(rev(old)), spec(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) }))
		c.deploy("own/pay", labels(rev(old)))
		c.deploy("own/slow", labels(rev(old)), takes(50))
		c.deploy("web/first", notes(v1.AnnotationMigrationBatch, "-1"))
		c.deploy("web/front")
		c.deploy("web/agent", ofKind(kindDaemonSet))
		c.deploy("web/db", ofKind(kindStatefulSet))
		c.upgradeOn(0, "v1.26.0")
	}
	// end is what must be the same.
	type end struct {
		Pods     map[string]string
		Restarts map[string]int
		State    v1.WorkloadMigrationState
		Total    int32
		Migrated int32
		Failures []string
		Reason   string
		// Batches are the events of batches: each starts once, and ends once.
		Batches []string
	}
	batches := map[*cluster][]string{}
	endOf := func(c *cluster) end {
		status := c.istio.Status.WorkloadMigration
		e := end{
			Pods: map[string]string{}, Restarts: c.restarts,
			State: status.State, Total: status.TotalWorkloads, Migrated: status.MigratedWorkloads,
			Reason: migratedCondition(c.istio).Message,
		}
		for _, a := range c.apps {
			e.Pods[a.key()] = a.runsOn()
		}
		e.Batches = batches[c]
		for _, f := range status.Failures {
			e.Failures = append(e.Failures, f.Name+": "+f.Reason)
		}
		return e
	}
	const never = 1 << 30
	run := func(t *testing.T, downtime time.Duration, dies ...int) *cluster {
		c := newCluster(t)
		c.tell = func(format string, args ...any) {
			if event := batchEvent.FindString(fmt.Sprintf(format, args...)); event != "" {
				batches[c] = append(batches[c], event)
			}
		}
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
	undisturbed := run(t, 0, never)
	want := endOf(undisturbed)
	if want.State != v1.WorkloadMigrationStateFailed || want.Total != 12 || want.Migrated != 11 || len(want.Failures) != 1 {
		t.Fatalf("this is not the migration that is meant: %+v", want)
	}
	if len(want.Batches) < 8 {
		t.Fatalf("events of batches: %v", want.Batches)
	}
	for what, n := range want.Restarts {
		if n != 1 {
			t.Errorf("undisturbed, %s is restarted %d times", what, n)
		}
	}
	for name, downtime := range map[string]time.Duration{"back at once": 0, "back after a minute": time.Minute, "back after an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			for k := range undisturbed.writes {
				for _, dies := range [][]int{{k}, {k, k, k + 1}} {
					c := run(t, downtime, dies...)
					if diff := cmp.Diff(want, endOf(c)); diff != "" {
						t.Errorf("killed after writes %v (-undisturbed +crashed):\n%s", dies, diff)
					}
					if c.restarting > 3 {
						t.Errorf("killed after writes %v: %d were restarting", dies, c.restarting)
					}
				}
				if t.Failed() {
					t.Fatalf("after %d of %d", k, undisturbed.writes)
				}
			}
		})
	}
}
