package workload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// stalled is a migration, one by one, in which the owner of the first workload gives it a day, and it never gets ready.
func stalled(c *cluster) {
	c.settings(1, "10s").ReadinessTimeout = ptr.To[v1.Duration]("1m")
	c.shop("b c")
	c.deploy("shop/a", brokenOn(target), deadline(0), notes(v1.AnnotationReadinessTimeout, "24h"))
	c.upgradeOn(0, "v1.26.0")
}

// TestAnnotationCannotStallOthers: later batches wait for a workload no longer than the Istio says, and its annotation gives
// it no more than maxReadinessTimeout.
func TestAnnotationCannotStallOthers(t *testing.T) {
	c := newCluster(t)
	stalled(c)
	var events []string
	c.tell = func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); strings.Contains(text, "on shop/a") {
			events = append(events, text)
		}
	}
	c.on(180, "", func() {
		for _, name := range []string{"shop/b", "shop/c"} {
			if on := c.apps[name].runsOn(); on != target {
				t.Errorf("after 3m, %s runs on %s", name, on)
			}
		}
		if status := c.istio.Status.WorkloadMigration; status.State != v1.WorkloadMigrationStateInProgress || status.MigratedWorkloads != 2 {
			t.Errorf("after 3m, the status is %+v", status)
		}
	})
	c.run(func() bool { return true }, 0)
	status := c.istio.Status.WorkloadMigration
	if status.State != v1.WorkloadMigrationStateFailed || status.MigratedWorkloads != 2 || len(status.Failures) != 1 {
		t.Fatalf("in the end, the status is %+v", status)
	}
	if got, want := status.Failures[0].Reason, "Readiness timeout exceeded after 30m0s"; got != want {
		t.Errorf("it failed with %q, want %q", got, want)
	}
	want := []string{
		"event    normal on shop/a: Migrating: it was restarted to move from default-v1-24-0 to default-v1-26-0: its pods still run the old revision; annotation sailoperator.io/readiness-timeout is 24h, above batched.maxReadinessTimeout; 30m0s is used",
		"event    warning on shop/a: ReadinessTimeoutCapped: annotation sailoperator.io/readiness-timeout is 24h, above batched.maxReadinessTimeout; 30m0s is used",
		"event    warning on shop/a: Overdue: not ready after 1m0s, the readinessTimeout of Istio default; annotation sailoperator.io/readiness-timeout gives it 30m0s, and the next batches do not wait",
		"event    warning on shop/a: MigrationFailed: moving to default-v1-26-0 failed: Readiness timeout exceeded after 30m0s",
	}
	if got := strings.Join(events, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("events:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// TestOverdueAndKilled: that later batches did not wait does not turn into success when the operator is killed at any write,
// and what gets ready in the end counts.
func TestOverdueAndKilled(t *testing.T) {
	for name, heals := range map[string]bool{"never ready": false, "ready after ten minutes": true} {
		run := func(t *testing.T, dies ...int) *cluster {
			c := newCluster(t)
			stalled(c)
			if heals {
				a := c.apps["shop/a"]
				a.brokenOn, a.takes = "", 5*time.Minute
			}
			c.run(func() bool {
				if len(dies) > 0 && c.writes == dies[0] {
					dies = dies[1:]
					return false
				}
				return true
			}, 20*time.Second)
			return c
		}
		t.Run(name, func(t *testing.T) {
			want := *run(t).istio.Status.WorkloadMigration
			if failed := want.State == v1.WorkloadMigrationStateFailed; failed == heals || want.TotalWorkloads != 3 {
				t.Fatalf("undisturbed, the status is %+v", want)
			}
			for k := range run(t).writes {
				c := run(t, k, k+1)
				if got := c.istio.Status.WorkloadMigration; got.State != want.State || got.MigratedWorkloads != want.MigratedWorkloads || got.TotalWorkloads != 3 {
					t.Errorf("killed after write %d: %+v", k, got)
				}
				for what, n := range c.restarts {
					if n > 1 {
						t.Errorf("killed after write %d: %s is restarted %d times", k, what, n)
					}
				}
			}
		})
	}
}
