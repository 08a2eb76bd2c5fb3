package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// TestSettle has how far a Deployment of three replicas is that was moved at the epoch. The time is a minute later unless
// it is told.
func TestSettle(t *testing.T) {
	const timeout = 5 * time.Minute
	three := func(options ...option) []option {
		return append([]option{replicas(3), says("3 of 3 new, 3 ready"), since("ReplicaSetUpdated", 20)}, options...)
	}
	all := func(revision string) option { return runs(revision, 3) }
	cases := map[string]struct {
		deployment []option
		mark       func(*Mark)
		now        int // seconds
		want       string
	}{
		// Underway.
		"a moment after the change, while every pod is old and ready": {
			deployment: three(all(old), unseen, since("NewReplicaSetAvailable", -3600)), want: "Running 0/3 ready",
		},
		"seen, and no new pod yet": {
			deployment: three(all(old), says("0 of 3 new, 3 ready"), since("NewReplicaSetAvailable", -3600)), want: "Running 0/3 ready",
		},
		"as many ready as desired, one of them old": {
			deployment: three(runs(old, 1), runs(target, 3), says("3 of 4 new, 3 ready")), want: "Running 2/3 ready",
		},
		"one surplus pod of the old ones left": {
			deployment: three(runs(old, 1), runs(target, 3), says("3 of 4 new, 4 ready")), want: "Running 3/3 ready",
		},
		"all new, one not ready":     {deployment: three(all(target), says("3 of 3 new, 2 ready")), want: "Running 2/3 ready"},
		"all ready, one unavailable": {deployment: three(all(target), says("3 of 3 new, 3 ready, 2 available")), want: "Running 3/3 ready"},
		"one is missing":             {deployment: three(runs(target, 2), says("2 of 2 new, 2 ready")), want: "Running 2/3 ready"},
		"all ready, and their pods are not seen yet": {
			deployment: three(runs(target, 1)), want: "Running 3/3 ready",
		},
		"rolled back to pods that exist, and what it says of itself is from before": {
			deployment: three(runs(target, 1), runs(old, 2), says("1 of 3 new, 3 ready"), since("NewReplicaSetAvailable", -3600)), want: "Running 1/3 ready",
		},
		"recreated: the old ones are gone, the new ones not there": {
			deployment: three(says("0 of 0 new, 0 ready"), since("NewReplicaSetAvailable", -3600)), want: "Running 0/3 ready",
		},
		"done, as it says, and old pods were seen a moment ago": {
			deployment: three(runs(target, 3), runs(old, 1), since("NewReplicaSetAvailable", 55)), want: "Running 3/3 ready, until 1m6s",
		},
		"the last second of its time": {deployment: three(all(target), says("3 of 3 new, 2 ready")), now: 299, want: "Running 2/3 ready"},

		// Done.
		"done":                        {deployment: three(all(target), since("NewReplicaSetAvailable", 40)), want: "Done 3/3 ready at 41s"},
		"done within a second":        {deployment: three(all(target), since("NewReplicaSetAvailable", 0)), now: 1, want: "Done 3/3 ready at 1s"},
		"done before we could look":   {deployment: three(all(target), since("NewReplicaSetAvailable", 0)), mark: startedLate, now: 1, want: "Done 3/3 ready at 1s"},
		"done by a clock ahead of us": {deployment: three(all(target), since("NewReplicaSetAvailable", 90)), want: "Done 3/3 ready at 1m0s"},
		"done by a clock behind us": {
			deployment: three(all(target), since("NewReplicaSetAvailable", -8)), want: "Done 3/3 ready at 1m0s, to be written",
		},
		"done, and then a pod crashes": {
			deployment: three(all(target), says("3 of 3 new, 1 ready"), since("NewReplicaSetAvailable", 40)), now: 900, want: "Done 1/3 ready at 41s",
		},
		"done, and then a node is drained": {
			deployment: three(runs(target, 1), says("1 of 1 new, 1 ready"), since("NewReplicaSetAvailable", 40)), now: 900, want: "Done 1/3 ready at 41s",
		},
		"done, and then scaled up": {
			deployment: three(all(target), replicas(5), says("3 of 3 new, 3 ready"), since("NewReplicaSetAvailable", 40)), now: 900, want: "Done 3/5 ready at 41s",
		},
		"done, and then scaled up, which its controller has yet to see": {
			deployment: three(all(target), replicas(5), since("NewReplicaSetAvailable", 40), changed, unseen), now: 900, want: "Done 0/5 ready at 41s",
		},
		"done, and then rolled out again by somebody else, in vain": {
			deployment: three(all(target), says("1 of 3 new, 2 ready"), since("ReplicaSetUpdated", 600), changed), now: 900, want: "Done 0/3 ready at 15m0s, to be written",
		},
		"done, and then rolled out again by somebody else, and given up": {
			deployment: three(all(target), says("1 of 3 new, 2 ready"), since("ProgressDeadlineExceeded", 600), changed), now: 900, want: "Done 0/3 ready at 15m0s, to be written",
		},
		"an autoscaler added a pod meanwhile": {
			deployment: three(runs(target, 4), replicas(4), says("4 of 4 new, 4 ready"), since("NewReplicaSetAvailable", 40)), want: "Done 4/4 ready at 41s",
		},
		"an autoscaler took a pod meanwhile": {
			deployment: three(runs(target, 2), replicas(2), says("2 of 2 new, 2 ready"), since("NewReplicaSetAvailable", 40)), want: "Done 2/2 ready at 41s",
		},
		"no progress deadline, so nobody says when": {
			deployment: three(all(target), undated), want: "Done 3/3 ready at 1m0s, to be written",
		},
		"no progress deadline, written down": {
			deployment: three(all(target), undated), mark: func(m *Mark) { m.Done = at(30) }, want: "Done 3/3 ready at 30s",
		},
		"no progress deadline, written down, and then a pod crashes": {
			deployment: three(all(target), undated, says("3 of 3 new, 2 ready")), mark: func(m *Mark) { m.Done = at(30) }, now: 900, want: "Done 2/3 ready at 30s",
		},
		"scaled to zero by its owner":                {deployment: three(replicas(0), says("0 of 0 new, 0 ready")), want: "Done 0/0 ready at 1m0s, to be written"},
		"scaled to zero by its owner, pods are left": {deployment: three(replicas(0), runs(old, 1), says("0 of 1 new, 1 ready")), want: "Done 0/0 ready at 1m0s, to be written"},
		"scaled to zero after it was done":           {deployment: three(replicas(0), says("0 of 0 new, 0 ready"), since("NewReplicaSetAvailable", 40)), now: 900, want: "Done 0/0 ready at 41s"},
		"there was nothing to restart":               {deployment: three(replicas(0), says("0 of 0 new, 0 ready")), mark: func(m *Mark) { m.Batch = 0 }, now: 900, want: "Done 0/0 ready at 0s"},
		"replicas not told":                          {deployment: three(func(d *appsv1.Deployment, _ inventory.Pods) { d.Spec.Replicas = nil }, runs(target, 1), says("1 of 1 new, 1 ready"), since("NewReplicaSetAvailable", 40)), want: "Done 1/1 ready at 41s"},
		"done after all":                             {deployment: three(all(target), since("NewReplicaSetAvailable", 400)), mark: gaveUp, now: 900, want: "Done 3/3 ready at 15m0s, to be written"},
		"ready in the end":                           {deployment: three(all(target), since("NewReplicaSetAvailable", 299)), now: 900, want: "Done 3/3 ready at 5m0s"},
		"late, and nobody saw":                       {deployment: three(all(target), since("NewReplicaSetAvailable", 600)), now: 900, want: "Done 3/3 ready at 10m1s"},

		// Failed.
		"time is up": {
			deployment: three(all(target), says("3 of 3 new, 2 ready")), now: 300,
			want: "Failed 2/3 ready at 5m0s, to be written: ReadinessTimeout: Readiness timeout exceeded after 5m0s",
		},
		"time is up, of a workload that an autoscaler has scaled": {
			deployment: three(runs(target, 1), runs(old, 3), says("1 of 4 new, 3 ready"), changed), now: 300,
			want: "Failed 0/3 ready at 5m0s, to be written: ReadinessTimeout: Readiness timeout exceeded after 5m0s",
		},
		"time is up before it began": {
			deployment: three(all(old), unseen), now: 301,
			want: "Failed 0/3 ready at 5m1s, to be written: ReadinessTimeout: Readiness timeout exceeded after 5m0s",
		},
		"given up by the Deployment itself": {
			deployment: three(runs(target, 3), runs(old, 1), says("3 of 4 new, 3 ready"), since("ProgressDeadlineExceeded", 50)),
			want:       "Failed 2/3 ready at 1m0s, to be written: ProgressDeadlineExceeded: Deployment failed to reach ready state: 2/3 replicas ready",
		},
		"given up before we moved it does not count": {
			deployment: three(runs(target, 1), runs(old, 3), says("1 of 4 new, 3 ready"), since("ProgressDeadlineExceeded", -50)), want: "Running 0/3 ready",
		},
		"given up, but not this change": {
			deployment: three(all(old), unseen, since("ProgressDeadlineExceeded", 50)), want: "Running 0/3 ready",
		},
		"wrong revision": {
			deployment: three(all(old), since("NewReplicaSetAvailable", 40)),
			want:       "Failed 3/3 ready at 1m0s, to be written: WrongRevision: its pods came up with default-v1-24-0 instead of default-v1-26-0",
		},
		"no sidecar": {
			deployment: three(all(""), since("NewReplicaSetAvailable", 40)),
			want:       "Failed 3/3 ready at 1m0s, to be written: WrongRevision: its pods came up with no sidecar instead of default-v1-26-0",
		},
		"several wrong ones": {
			deployment: three(runs("", 1), runs(old, 1), runs(target, 1), since("NewReplicaSetAvailable", 40)),
			want:       "Failed 3/3 ready at 1m0s, to be written: WrongRevision: its pods came up with default-v1-24-0 and no sidecar instead of default-v1-26-0",
		},
		"wrong revision, and nobody says since when: it has all the time there is": {
			deployment: three(all(old), undated), now: 299, want: "Running 3/3 ready",
		},
		"wrong revision, and nobody says since when": {
			deployment: three(all(old), undated), now: 300,
			want: "Failed 3/3 ready at 5m0s, to be written: WrongRevision: its pods came up with default-v1-24-0 instead of default-v1-26-0",
		},
		"written down": {
			deployment: three(all(target), says("3 of 3 new, 2 ready")), mark: gaveUp, now: 900,
			want: "Failed at 5m0s: ReadinessTimeout: not ready in time",
		},
		"written down, and still in its time": {
			deployment: three(all(target), says("3 of 3 new, 2 ready")), mark: gaveUp,
			want: "Failed at 5m0s: ReadinessTimeout: not ready in time",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, pods := makeDeployment("shop/cart", tc.deployment...)
			mark := Mark{
				Istio: "default", Target: target, From: old, Action: ActionRestart,
				Run: epoch, Batch: 1, Started: epoch, Generation: generation,
			}
			if tc.mark != nil {
				tc.mark(&mark)
			}
			if tc.now == 0 {
				tc.now = 60
			}
			if got := tellOutcome(outcomeOf(inventory.From(d), pods, mark, timeout, at(tc.now)), mark.Started.Add(timeout)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func startedLate(m *Mark) { m.Started = epoch.Add(700 * time.Millisecond) }

func gaveUp(m *Mark) { *m = *m.failed(at(300), passage.Because(v1.ReasonTimeout, "not ready in time")) }

// tellOutcome is an outcome on one line. It says until when only where that is not the usual time.
func tellOutcome(o outcome, deadline time.Time) string {
	text := string(o.state)
	if o.progress != "" {
		text += " " + o.progress
	}
	if !o.ended.IsZero() {
		text += " at " + o.ended.Sub(epoch).String()
	}
	if !o.deadline.IsZero() && !o.deadline.Equal(deadline) {
		text += ", until " + o.deadline.Sub(epoch).String()
	}
	if o.unwritten != nil {
		text += ", to be written"
	}
	if o.reason != nil {
		text += ": " + o.reason.String()
	}
	return text
}

// TestReadyMeansTheNewPods shows that the rule of the design, readyReplicas == replicas, holds while every pod is old.
func TestReadyMeansTheNewPods(t *testing.T) {
	d, pods := makeDeployment("shop/cart", runs(old, 2), unseen, moved(0, 1))
	if ptr.Deref(d.Spec.Replicas, 1) != d.Status.ReadyReplicas {
		t.Fatal("this is not the moment that is meant")
	}
	if far := outcomeOf(inventory.From(d), pods, *markOn(d), time.Minute, at(1)); far.state != passage.Running {
		t.Errorf("it is %s", far.state)
	}
}

// TestTimeouts are those of workloads, which begin with each of them and may be its own.
func TestTimeouts(t *testing.T) {
	slow := func(name string, options ...option) part {
		return deploy(name, append([]option{halfway}, options...)...)
	}
	o := observed(migrating, batchSize(9), namespace("shop", rev(target)),
		slow("shop/began-early", moved(0, 1)),
		slow("shop/began-late", moved(200, 1)),
		slow("shop/hasty", moved(200, 1), annotated(v1.AnnotationReadinessTimeout, "10s")),
		slow("shop/patient", moved(0, 1), annotated(v1.AnnotationReadinessTimeout, "10m")),
		// Somebody has broken it since.
		slow("shop/unreadable", moved(200, 1), annotated(v1.AnnotationReadinessTimeout, "10 minutes")),
	)
	d := decide(o, at(300))
	got := map[string]string{}
	for _, s := range d.Plan.Steps {
		got[s.Object.Name] = string(s.State)
		if s.State == passage.Failed {
			got[s.Object.Name] += " " + s.Reason.Message
		}
	}
	want := map[string]string{
		"began-early": "Failed Readiness timeout exceeded after 5m0s",
		"began-late":  "Running",
		"hasty":       "Failed Readiness timeout exceeded after 10s",
		"patient":     "Running",
		"unreadable":  "Running",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after five minutes (-want +got):\n%s", diff)
	}
	if !d.deadline.Equal(at(500)) {
		t.Errorf("the next time is up at %s, not when that of began-late is", d.deadline.Sub(epoch))
	}
	var ended []string
	for _, e := range d.endedMoves {
		ended = append(ended, e.Name)
	}
	if diff := cmp.Diff("began-early hasty patient", strings.Join(ended, " ")); diff != "" {
		t.Errorf("to be written down (-want +got):\n%s", diff)
	}
}
