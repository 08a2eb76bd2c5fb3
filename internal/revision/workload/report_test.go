package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// deployments are that many Deployments, numbered from one, as the options of each say.
func deployments(count int, options func(number int) []option) part {
	return func(o *Observed) {
		for number := 1; number <= count; number++ {
			deploy(fmt.Sprintf("shop/w%02d", number), options(number)...)(o)
		}
	}
}

// inFives are workloads in batches of five, a minute apart.
func inFives(number int) (batch, started int) { return (number + 4) / 5, (number - 1) / 5 * 60 }

func statusAt(o Observed, now time.Time) *v1.WorkloadMigrationStatus {
	return statusOf(o, decide(o, now), now)
}

// TestStatusExamples makes the examples of the design from what can be observed.
func TestStatusExamples(t *testing.T) {
	shop := namespace("shop", rev(target))
	// settledAs is a Deployment that has failed in the way that the controller finds out and writes down.
	failsAt := func(name string, seconds int, options ...option) part {
		return func(o *Observed) {
			d := decide(observed(migrating, namespace("shop", rev(target)), deploy(name, options...)), at(seconds))
			if len(d.endedMoves) != 1 {
				t.Fatalf("%s has not failed: %v", name, d.Plan.Steps)
			}
			deploy(name, append(options, annotated(v1.AnnotationMigration, d.endedMoves[0].mark.String()))...)(o)
		}
	}
	cases := map[string]struct {
		world []part
		now   time.Time
		// differs is where the example does not add up.
		differs func(map[string]any)
	}{
		"migration-in-progress": {
			world: []part{deployments(47, func(n int) []option {
				batch, started := inFives(n)
				switch {
				case n <= 23:
					return []option{moved(started, batch), arrived(started + 20)}
				case n <= 25:
					return []option{moved(started, batch), halfway}
				}
				return []option{runs(old, 2)}
			})},
			now: at(250),
		},
		"migration-completed": {
			world: []part{deployments(47, func(n int) []option {
				batch, started := inFives(n)
				return []option{moved(started, batch), arrived(started + 20)}
			})},
			now: at(923),
		},
		"migration-failed": {
			world: []part{
				deployments(44, func(n int) []option {
					batch, started := inFives(n)
					return []option{moved(started, batch), arrived(started + 20)}
				}),
				failsAt("production/legacy-app", 312, moved(12, 1), halfway),
				failsAt("staging/flaky-service", 525, moved(60, 2), replicas(3), runs(old, 1), runs(target, 3),
					says("3 of 4 new, 3 ready"), since("ProgressDeadlineExceeded", 525)),
				failsAt("production/critical-app", 750, moved(450, 10), halfway),
			},
			now: at(923),
			differs: func(status map[string]any) {
				// With nothing left to be moved there is no batch left: eight of ten is a migration that goes on.
				status["batched"] = map[string]any{"currentBatch": 10.0, "totalBatches": 10.0}
				// The design's fields are complete; the code is Fairlead's addition.
				for i, code := range []v1.Reason{v1.ReasonTimeout, v1.ReasonProgressDeadline, v1.ReasonTimeout} {
					status["failures"].([]any)[i].(map[string]any)["code"] = string(code)
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observed(append([]part{migrating, batchSize(5), shop}, tc.world...)...)
			text, err := yaml.Marshal(statusAt(o, tc.now))
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := yaml.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			want := example(t, name)
			if tc.differs != nil {
				tc.differs(want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("status (-design +got):\n%s", diff)
			}
		})
	}
}

// example is one of the status examples of the design.
func example(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "test", "compatibility", "testdata", "status", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var istio struct {
		Status struct {
			WorkloadMigration map[string]any `json:"workloadMigration"`
		} `json:"status"`
	}
	if err := yaml.Unmarshal(text, &istio); err != nil {
		t.Fatal(err)
	}
	return istio.Status.WorkloadMigration
}

// TestState has each state that a migration can be in, and what brings it there. The time is 40 seconds after the epoch.
func TestState(t *testing.T) {
	const (
		idle       = v1.WorkloadMigrationStateIdle
		inProgress = v1.WorkloadMigrationStateInProgress
		completed  = v1.WorkloadMigrationStateCompleted
		failed     = v1.WorkloadMigrationStateFailed
	)
	shop := namespace("shop", rev(target))
	behind := deploy("shop/cart", runs(old, 2))
	underway := deploy("shop/cart", moved(0, 1), halfway)
	done := deploy("shop/cart", moved(0, 1), arrived(20))
	broken := deploy("shop/cart", moved(0, 1, func(m *Mark) { gaveUp(m); m.Failed = at(30) }), halfway)
	times := func(start, completion int) (s, c *metav1.Time) {
		if start >= 0 {
			s = ptr.To(metav1.NewTime(at(start)))
		}
		if completion >= 0 {
			c = ptr.To(metav1.NewTime(at(completion)))
		}
		return s, c
	}
	const none = -1
	cases := map[string]struct {
		parts             []part
		state             v1.WorkloadMigrationState // empty: no status
		start, completion int
	}{
		// Idle.
		"the first revision there is":                {[]part{only(target)}, idle, none, none},
		"no active revision yet":                     {[]part{func(o *Observed) { o.Target = Target{Hold: passage.Hold(v1.ReasonRevisionNotActive, "none")} }}, idle, none, none},
		"to be moved, and the revision is not ready": {[]part{shop, behind, notReady}, idle, none, none},
		"to be moved, and paused":                    {[]part{shop, behind, pausedIstio}, idle, none, none},
		"to be moved to a version above the bound":   {[]part{shop, behind, maxVersion("1.24.999")}, idle, none, none},
		"to be moved, and not begun":                 {[]part{shop, behind}, idle, none, none},
		"a migration to another target before": {
			[]part{shop, behind, notReady, tells(v1.WorkloadMigrationStatus{State: completed, TargetRevision: old, StartTime: ptr.To(metav1.NewTime(at(-900)))})}, idle, none, none,
		},

		// InProgress.
		"begun":                    {[]part{shop, behind, migrating}, inProgress, 0, none},
		"underway":                 {[]part{shop, underway, migrating}, inProgress, 0, none},
		"paused in the middle":     {[]part{shop, behind, migrating, pausedIstio}, inProgress, 0, none},
		"the bound was lowered":    {[]part{shop, behind, migrating, maxVersion("1.24.999")}, inProgress, 0, none},
		"one failed, others go on": {[]part{shop, broken, deploy("shop/pay", runs(old, 2)), migrating}, inProgress, 0, none},
		"it failed, and that is not written down yet": {
			[]part{shop, deploy("shop/cart", moved(-300, 1), halfway), migrating}, inProgress, 0, none,
		},
		"one failed first of all, and others beside it are waited for": {
			[]part{shop, broken, deploy("shop/pay", moved(0, 1), halfway), deploy("shop/web", runs(old, 2)), migrating, failFast}, inProgress, 0, none,
		},
		"switched off, and what has begun is seen through": {[]part{shop, underway, migrating, switchedOff}, inProgress, 0, none},

		// Completed.
		"all done":                              {[]part{shop, done, migrating}, completed, 0, 40},
		"all that was to be moved is gone":      {[]part{migrating}, completed, 0, 40},
		"all done while it was paused":          {[]part{shop, done, migrating, pausedIstio}, completed, 0, 40},
		"nothing to move":                       {[]part{shop, deploy("shop/cart", runs(target, 2))}, completed, 40, 40},
		"nothing that may be moved":             {[]part{shop, deploy("shop/cart", runs(old, 2), skipped)}, completed, 40, 40},
		"completed long ago":                    {[]part{shop, done, migrated(completed, 30)}, completed, 0, 30},
		"completed, and its old revision gone":  {[]part{only(target), shop, done, migrated(completed, 30)}, completed, 0, 30},
		"completed, and paused, and one is new": {[]part{shop, done, deploy("shop/new", runs(old, 2)), migrated(completed, 30), pausedIstio}, completed, 0, 30},
		"the last that failed is gone":          {[]part{shop, done, migrated(failed, 30)}, completed, 0, 40},
		"the last that failed got there":        {[]part{shop, deploy("shop/cart", moved(0, 1, gaveUp), arrived(35)), migrated(failed, 30)}, completed, 0, 40},

		// Failed.
		"one failed, the last of all":           {[]part{shop, broken, migrating}, failed, 0, 40},
		"one failed first of all":               {[]part{shop, broken, deploy("shop/pay", runs(old, 2)), migrating, failFast}, failed, 0, 40},
		"failed long ago":                       {[]part{shop, broken, migrated(failed, 30)}, failed, 0, 30},
		"failed in the migration before":        {[]part{shop, deploy("shop/cart", moved(-900, 1, earlierRun, gaveUp), halfway), migrating}, failed, 0, 40},
		"completed, and one was taken back":     {[]part{namespace("shop", ""), deploy("shop/cart", podLabels(rev(old)), runs(old, 2), moved(-900, 1), since("NewReplicaSetAvailable", 20)), migrated(completed, -600)}, failed, 0, 40},
		"an annotation that cannot be read":     {[]part{shop, deploy("shop/cart", runs(old, 2), annotated(v1.AnnotationMigrationBatch, "x"))}, failed, 40, 40},
		"a label that cannot be moved":          {[]part{namespace("shop", rev(old)), refuses("shop", "no"), migrating}, failed, 0, 40},
		"one that will not let itself be moved": {[]part{shop, behind, refuses("shop/cart", "no"), migrating}, failed, 0, 40},

		// None.
		"switched off":                               {[]part{shop, behind, switchedOff}, "", none, none},
		"switched off in the middle":                 {[]part{shop, behind, migrating, switchedOff}, "", none, none},
		"switched off, and what had begun is done":   {[]part{shop, done, migrating, switchedOff}, "", none, none},
		"switched off, and what had begun is failed": {[]part{shop, broken, migrating, switchedOff}, "", none, none},
		"switched off after the end":                 {[]part{shop, done, migrated(completed, 30), switchedOff}, "", none, none},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observed(tc.parts...)
			got := statusAt(o, at(40))
			if tc.state == "" {
				if got != nil {
					t.Errorf("there is one: %+v", got)
				}
				return
			}
			if got == nil {
				t.Fatal("there is none")
			}
			start, completion := times(tc.start, tc.completion)
			if tc.completion < none {
				completion = ptr.To(metav1.NewTime(at(tc.completion)))
			}
			type ends struct {
				State             v1.WorkloadMigrationState
				Start, Completion *metav1.Time
			}
			want := ends{tc.state, start, completion}
			if diff := cmp.Diff(want, ends{got.State, got.StartTime, got.CompletionTime}); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if got.TargetRevision != o.Target.Name {
				t.Errorf("target %s, want %s", got.TargetRevision, o.Target.Name)
			}
			if len(decide(o, at(40)).endedMoves) > 0 || got.State == inProgress {
				return
			}
			o.Istio.Status.WorkloadMigration = got
			if diff := cmp.Diff(got, statusAt(o, at(50))); diff != "" {
				t.Errorf("ten seconds later (-before +after):\n%s", diff)
			}
		})
	}
}

// TestStatusOfTheMigrationBefore stays while something is on its way there and the new one is held up.
func TestStatusOfTheMigrationBefore(t *testing.T) {
	before := v1.WorkloadMigrationStatus{State: v1.WorkloadMigrationStateInProgress, TargetRevision: old, TotalWorkloads: 4, StartTime: ptr.To(metav1.NewTime(at(-60)))}
	for name, hold := range map[string]part{"not ready": notReady, "paused": pausedIstio} {
		t.Run(name, func(t *testing.T) {
			got := statusAt(observed(tells(before), elsewhere("shop/cart"), hold), at(40))
			if diff := cmp.Diff(&before, got); diff != "" {
				t.Errorf("status (-before +got):\n%s", diff)
			}
		})
	}
}

func TestCounters(t *testing.T) {
	shop := namespace("shop", rev(target))
	six := func(n int) []option {
		switch n {
		case 1:
			return []option{moved(0, 1), arrived(20)}
		case 2:
			return []option{moved(0, 1, gaveUp), halfway}
		case 3:
			return []option{moved(30, 2), halfway}
		case 4:
			return []option{runs(old, 2)}
		case 5:
			return []option{runs(old, 2), skipped}
		}
		return []option{arrived(25)}
	}
	cases := map[string]struct {
		parts                         []part
		total, migrated, failed       int32
		currentBatch, expectedBatches int32
	}{
		"nothing":      {nil, 0, 0, 0, 0, 0},
		"not one done": {[]part{deployments(3, func(int) []option { return []option{runs(old, 2)} })}, 3, 0, 0, 0, 3},
		"one of each: done, failed, underway, to come, skipped, moved by somebody else": {
			[]part{deployments(6, six)}, 5, 2, 1, 2, 3,
		},
		"the one underway was deleted": {
			[]part{deployments(6, six), without("w03")}, 4, 2, 1, 1, 2,
		},
		"the one to come was deleted": {
			[]part{deployments(6, six), without("w04")}, 4, 2, 1, 2, 2,
		},
		"one that is being deleted does not count": {
			[]part{deployments(3, func(n int) []option {
				if n == 2 {
					return []option{runs(old, 2), beingDeleted}
				}
				return []option{runs(old, 2)}
			})}, 2, 0, 0, 0, 2,
		},
		"other kinds and namespaces do not count": {
			[]part{namespace("web", rev(old)), unmanagedWorkload("apps/v1 StatefulSet web/db", old, 3)}, 0, 0, 0, 0, 0,
		},
		"batches of two": {
			[]part{batchSize(2), deployments(5, func(int) []option { return []option{runs(old, 2)} })}, 5, 0, 0, 0, 3,
		},
		"batches do not mix priorities": {
			[]part{batchSize(2), deployments(5, func(n int) []option {
				return []option{runs(old, 2), annotated(v1.AnnotationMigrationBatch, fmt.Sprint(n/4))}
			})}, 5, 0, 0, 0, 3,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := statusAt(observed(append([]part{migrating, shop}, tc.parts...)...), at(60))
			want := v1.WorkloadMigrationStatus{
				TotalWorkloads: tc.total, MigratedWorkloads: tc.migrated, FailedWorkloads: tc.failed,
				Batched: &v1.BatchedMigrationStatus{CurrentBatch: tc.currentBatch, TotalBatches: tc.expectedBatches},
			}
			if diff := cmp.Diff(want, v1.WorkloadMigrationStatus{
				TotalWorkloads: got.TotalWorkloads, MigratedWorkloads: got.MigratedWorkloads,
				FailedWorkloads: got.FailedWorkloads, Batched: got.Batched,
			}); diff != "" {
				t.Errorf("counters (-want +got):\n%s", diff)
			}
		})
	}
}

// without is an inventory without one Deployment.
func without(name string) part {
	return func(o *Observed) {
		for i, d := range o.Inventory.Workloads {
			if d.Name == name {
				o.Inventory.Workloads = append(o.Inventory.Workloads[:i:i], o.Inventory.Workloads[i+1:]...)
				return
			}
		}
	}
}

func TestFailures(t *testing.T) {
	// The later its number, the earlier it failed.
	failedAt := func(n int) int { return 900 - 10*n }
	o := observed(migrating, namespace("shop", rev(target)), deployments(13, func(n int) []option {
		return []option{halfway, moved(0, 1, func(m *Mark) { gaveUp(m); m.Failed = at(failedAt(n)) })}
	}), deploy("shop/refused", runs(old, 2)), refuses("shop/refused", "policy says no"))
	status := statusAt(o, at(1000))
	if status.FailedWorkloads != 14 {
		t.Errorf("%d have failed, and 14 are counted", status.FailedWorkloads)
	}
	var want []v1.WorkloadMigrationFailure
	for n := v1.MaxReportedFailures; n > 0; n-- {
		want = append(want, v1.WorkloadMigrationFailure{
			Namespace: "shop", Name: fmt.Sprintf("w%02d", n), Kind: "Deployment",
			Reason: "not ready in time", Code: v1.ReasonTimeout, Timestamp: metav1.NewTime(at(failedAt(n))),
		})
	}
	if diff := cmp.Diff(want, status.Failures); diff != "" {
		t.Errorf("the ten most recent ones, as they happened (-want +got):\n%s", diff)
	}
}

// TestBegan is what is written before anything moves.
func TestBegan(t *testing.T) {
	failedStatus := v1.WorkloadMigrationStatus{
		State: v1.WorkloadMigrationStateFailed, TargetRevision: target, TotalWorkloads: 3, MigratedWorkloads: 2, FailedWorkloads: 1,
		StartTime: ptr.To(metav1.NewTime(epoch)), CompletionTime: ptr.To(metav1.NewTime(at(100))),
	}
	anew := &v1.WorkloadMigrationStatus{
		State: v1.WorkloadMigrationStateInProgress, TargetRevision: target, StartTime: ptr.To(metav1.NewTime(at(200))),
	}
	goesOn := failedStatus.DeepCopy()
	goesOn.State, goesOn.CompletionTime = v1.WorkloadMigrationStateInProgress, nil
	cases := map[string]struct {
		parts []part
		want  *v1.WorkloadMigrationStatus
	}{
		"the first":                       {nil, anew},
		"after one to another target":     {[]part{tells(v1.WorkloadMigrationStatus{State: v1.WorkloadMigrationStateFailed, TargetRevision: old, StartTime: ptr.To(metav1.NewTime(epoch))})}, anew},
		"new workloads after a completed": {[]part{migrated(v1.WorkloadMigrationStateCompleted, 100)}, anew},
		"a failed one goes on":            {[]part{tells(failedStatus)}, goesOn},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, startedStatus(observed(tc.parts...), at(200).Add(300*time.Millisecond))); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}
