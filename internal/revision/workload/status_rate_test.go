package workload

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

func TestNews(t *testing.T) {
	before := v1.WorkloadMigrationStatus{
		State: v1.WorkloadMigrationStateInProgress, TargetRevision: target, TotalWorkloads: 9, MigratedWorkloads: 3,
		StartTime: ptr.To(metav1.NewTime(epoch)), Batched: &v1.BatchedMigrationStatus{CurrentBatch: 1, TotalBatches: 3},
	}
	for name, tc := range map[string]struct {
		change func(*v1.WorkloadMigrationStatus)
		want   statusChange
	}{
		"the same":               {func(*v1.WorkloadMigrationStatus) {}, unchanged},
		"one more is there":      {func(s *v1.WorkloadMigrationStatus) { s.MigratedWorkloads++ }, countersChanged},
		"one is gone":            {func(s *v1.WorkloadMigrationStatus) { s.TotalWorkloads-- }, countersChanged},
		"the next batch":         {func(s *v1.WorkloadMigrationStatus) { s.Batched.CurrentBatch++; s.MigratedWorkloads++ }, batchChanged},
		"one failed":             {func(s *v1.WorkloadMigrationStatus) { s.FailedWorkloads++ }, stateChanged},
		"it ended":               {func(s *v1.WorkloadMigrationStatus) { s.State = v1.WorkloadMigrationStateCompleted }, stateChanged},
		"it goes somewhere else": {func(s *v1.WorkloadMigrationStatus) { s.TargetRevision = old }, stateChanged},
	} {
		t.Run(name, func(t *testing.T) {
			now := before.DeepCopy()
			tc.change(now)
			if got := statusChangeOf(&before, now); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
	if statusChangeOf(nil, &before) != stateChanged || statusChangeOf(&before, nil) != stateChanged || statusChangeOf(nil, nil) != unchanged {
		t.Error("a status that comes or goes is not what it is")
	}
}

func TestWait(t *testing.T) {
	r := &reconciler{lastStatusWrite: map[string]time.Time{"default": epoch}}
	for _, tc := range []struct {
		news  statusChange
		after time.Duration
		want  time.Duration
	}{
		{unchanged, 0, 0},
		{stateChanged, 0, 0},
		{batchChanged, 300 * time.Millisecond, 700 * time.Millisecond},
		{batchChanged, time.Second, 0},
		{countersChanged, time.Second, 4 * time.Second},
		{countersChanged, 5 * time.Second, 0},
		{countersChanged, time.Hour, 0},
	} {
		if got := r.statusDelay("default", tc.news, epoch.Add(tc.after)); got != tc.want {
			t.Errorf("news %d after %s waits %s, want %s", tc.news, tc.after, got, tc.want)
		}
	}
	if got := r.statusDelay("other", countersChanged, epoch); got != 0 {
		t.Errorf("a status that was never written waits %s", got)
	}
}

// TestWritesOfManyWorkloads counts: one for each workload and each namespace, and few for everything else, be they ready
// at once or one after the other.
func TestWritesOfManyWorkloads(t *testing.T) {
	const namespaces, each = 20, 10
	for name, tc := range map[string]struct {
		takes func(workload int) int
		most  int
	}{
		"quick": {func(int) int { return 1 }, namespaces * each / 5},
		"slow":  {func(workload int) int { return 5 + 3*workload }, namespaces*each - 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.settings(20, "0s")
			for n := range namespaces {
				name := fmt.Sprintf("n%02d", n)
				c.namespace(name, rev(old))
				for w := range each {
					c.deploy(fmt.Sprintf("%s/w%d", name, w), takes(tc.takes(w)))
				}
			}
			c.upgradeOn(0, "v1.26.0")
			c.run(func() bool { return true }, 0)
			if status := c.istio.Status.WorkloadMigration; status.State != v1.WorkloadMigrationStateCompleted || status.MigratedWorkloads != namespaces*each {
				t.Fatalf("it ended as %+v", status)
			}
			if rest := c.writes - namespaces - namespaces*each; rest != c.statuses || rest > tc.most {
				t.Errorf("%d writes besides those of %d workloads, %d of them of the status", rest, namespaces*each, c.statuses)
			}
		})
	}
}
