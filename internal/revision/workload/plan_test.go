package workload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

func earlierRun(m *Mark) { m.Run = at(-5000) }

// rolling is a Deployment on the target that somebody rolls out again, with another image perhaps.
func rolling(d *appsv1.Deployment, pods inventory.Pods) {
	clear(pods)
	pods[target] = 3
	says("1 of 3 new, 2 ready")(d, pods)
	since("ReplicaSetUpdated", 1900)(d, pods)
	changed(d, pods)
}

// TestMovedBefore has what becomes of a Deployment that has a mark. The time is half an hour after the migration began.
func TestMovedBefore(t *testing.T) {
	const now = 1900
	const request = "2025-10-21T10:46:40Z"
	retried := annotatedIstio(fairlead.AnnotationRetry, request)
	failed := func(m *Mark) { gaveUp(m); m.Batch = 2 }
	// The others of its migration, of which one is in the batch after it.
	next := deploy("web/next", moved(1800, 3), halfway)
	cases := map[string]struct {
		parts []part
		cart  []option
		want  string // of shop/cart
		write bool
	}{
		"underway": {
			[]part{migrating}, []option{halfway, moved(1800, 2)},
			"Running restart, batch 2, 1/2 ready, Restarting: its pods are being replaced", false,
		},
		"done": {
			[]part{migrating}, []option{arrived(1850), moved(1800, 2)},
			"Done restart, batch 2, 2/2 ready, until 30m51s, RunsOnTarget: its pods run on default-v1-26-0", false,
		},
		"failed": {
			[]part{migrating}, []option{halfway, moved(1000, 2)},
			"Failed restart, batch 2, 1/2 ready, until 31m40s, ReadinessTimeout: Readiness timeout exceeded after 5m0s", true,
		},
		"failed, and written down": {
			[]part{migrating}, []option{halfway, moved(0, 2, gaveUp)},
			"Failed restart, batch 2, until 5m0s, ReadinessTimeout: not ready in time", false,
		},
		"an unreadable mark is none": {
			[]part{migrating}, []option{runs(old, 2), annotated(v1.AnnotationMigration, "?")},
			"Pending restart, OnOldRevision: its pods still run the old revision", false,
		},
		"the mark of another Istio is none": {
			[]part{migrating}, []option{runs(old, 2), moved(1800, 2, func(m *Mark) { m.Istio = "other" })},
			"Pending restart, OnOldRevision: its pods still run the old revision", false,
		},
		"the mark of another target": {
			[]part{migrating}, []option{runs(old, 2), moved(0, 2, func(m *Mark) { m.Target = old })},
			"Pending restart, OnOldRevision: its pods still run the old revision", false,
		},
		"label of its own, moved while there was nothing to restart": {
			[]part{migrating}, []option{replicas(0), says("0 of 0 new, 0 ready"), moved(1800, 0, relabelled)},
			"Done relabel, until 30m0s, RunsOnTarget: its pods run on default-v1-26-0", false,
		},
		"and scaled up since, not ready yet": {
			[]part{migrating}, []option{runs(target, 2), says("2 of 2 new, 0 ready"), since("ReplicaSetUpdated", 1890), moved(10, 0, relabelled)},
			"Done relabel, RunsOnTarget: its pods run on default-v1-26-0", false,
		},
		"a priority that was changed since is the one that counts": {
			[]part{migrating}, []option{halfway, moved(1800, 2), annotated(v1.AnnotationMigrationBatch, "7")},
			"Running restart, batch 2, priority 7, 1/2 ready, Restarting: its pods are being replaced", false,
		},

		// Its batch is over, so it was done.
		"rolled out again after its batch": {
			[]part{migrating, next}, []option{rolling, moved(0, 2)},
			"Done restart, batch 2, until 30m0s, RunsOnTarget: its pods run on default-v1-26-0", false,
		},
		"rolled out again after its batch, in vain": {
			[]part{migrating, next}, []option{rolling, since("ProgressDeadlineExceeded", 1700), moved(0, 2)},
			"Done restart, batch 2, until 30m0s, RunsOnTarget: its pods run on default-v1-26-0", false,
		},
		"its batch had settled before the next one was opened, whenever it was rolled out last": {
			[]part{migrating, next}, []option{arrived(1850), moved(0, 2)},
			"Done restart, batch 2, until 30m0s, RunsOnTarget: its pods run on default-v1-26-0", false,
		},
		"failed, and its batch is over": {
			[]part{migrating, next}, []option{halfway, moved(0, 2, gaveUp)},
			"Failed restart, batch 2, until 5m0s, ReadinessTimeout: not ready in time", false,
		},
		"rolled out again in the last batch that was opened: it is restarting": {
			[]part{migrating}, []option{rolling, moved(1800, 2)},
			"Running restart, batch 2, 0/2 ready, Restarting: its pods are being replaced", false,
		},

		// The migration is over.
		"rolled out again after the migration": {
			[]part{migrated(v1.WorkloadMigrationStateCompleted, 900)}, []option{rolling, moved(0, 2)},
			"Done restart, batch 2, RunsOnTarget: its pods run on default-v1-26-0", false,
		},
		"scaled down and up again after the migration": {
			[]part{migrated(v1.WorkloadMigrationStateCompleted, 900)}, []option{runs(target, 1), undated, says("1 of 1 new, 0 ready"), moved(0, 2)},
			"Done restart, batch 2, RunsOnTarget: its pods run on default-v1-26-0", false,
		},
		"taken back after the migration": {
			[]part{migrated(v1.WorkloadMigrationStateCompleted, 900)}, []option{podLabels(rev(old)), runs(old, 2), since("NewReplicaSetAvailable", 1800), moved(0, 2)},
			"Failed restart, batch 2, 2/2 ready, until 31m40s, WrongRevision: its pods came up with default-v1-24-0 instead of default-v1-26-0", true,
		},
		"being taken back after the migration": {
			[]part{migrated(v1.WorkloadMigrationStateCompleted, 900)}, []option{podLabels(rev(old)), runs(old, 1), runs(target, 2), says("1 of 3 new, 2 ready"), since("ReplicaSetUpdated", 1899), changed, moved(0, 2)},
			"Done restart, batch 2, RunsOnTarget: its pods run on default-v1-26-0", false,
		},
		"taken back, and to be left alone": {
			[]part{migrated(v1.WorkloadMigrationStateCompleted, 900)}, []option{podLabels(rev(old)), runs(old, 2), since("NewReplicaSetAvailable", 1800), moved(0, 2), skipped},
			"Skipped stay, SkippedByAnnotation: annotation sailoperator.io/skip-migration is set", false,
		},
		"taken out of the mesh after the migration": {
			[]part{migrated(v1.WorkloadMigrationStateCompleted, 900)}, []option{podLabels("sidecar.istio.io/inject=false"), runs("", 2), since("NewReplicaSetAvailable", 1800), moved(0, 2)},
			"", false,
		},

		// Another migration to the same target.
		"done in an earlier migration": {[]part{migrating}, []option{arrived(-4000), moved(-4500, 2, earlierRun)}, "", false},
		"rolled out again after an earlier migration": {
			[]part{migrating}, []option{rolling, moved(-4500, 2, earlierRun)}, "", false,
		},
		"failed in an earlier migration": {
			[]part{migrating}, []option{runs(old, 2), moved(-4500, 2, earlierRun, gaveUp)},
			"Failed restart, until 5m0s, ReadinessTimeout: not ready in time", false,
		},
		"failed in an earlier migration, and has come there since": {
			[]part{migrating}, []option{arrived(-4000), moved(-4500, 2, earlierRun, gaveUp)}, "", true,
		},
		"underway since before the record of its migration was lost": {
			[]part{migrating}, []option{halfway, moved(1800, 2, earlierRun)},
			"Running restart, 1/2 ready, Restarting: its pods are being replaced", false,
		},
		"underway, and there is no record of any migration": {
			nil, []option{halfway, moved(1800, 2)},
			"Running restart, 1/2 ready, Restarting: its pods are being replaced", false,
		},
		"gone back by itself while the target was another one": {
			[]part{migrating}, []option{runs(old, 2), since("NewReplicaSetAvailable", -1000), moved(-4500, 2, earlierRun)},
			"Pending restart, OnOldRevision: its pods still run the old revision", false,
		},

		// Tried again.
		"retried": {
			[]part{migrating, retried}, []option{runs(old, 1), runs(target, 1), moved(0, 2, gaveUp)},
			"Pending restart, Retried: retried after it failed: not ready in time", false,
		},
		"retried, with pods on the target that are not ready": {
			[]part{migrating, retried}, []option{runs(target, 2), says("2 of 2 new, 1 ready"), since("ProgressDeadlineExceeded", 600), moved(0, 2, gaveUp)},
			"Pending restart, Retried: retried after it failed: not ready in time", false,
		},
		"retried, and it has failed again": {
			[]part{migrating, retried}, []option{halfway, moved(1100, 2, func(m *Mark) { gaveUp(m); m.Retry = request })},
			"Failed restart, batch 2, until 5m0s, ReadinessTimeout: not ready in time", false,
		},
		"retried, and there is no need": {
			[]part{migrating, retried}, []option{arrived(800), moved(0, 2, gaveUp)},
			"Done restart, batch 2, 2/2 ready, until 31m40s, RunsOnTarget: its pods run on default-v1-26-0", true,
		},
		"retried, and to be left alone now": {
			[]part{migrating, retried}, []option{runs(old, 2), moved(0, 2, failed), skipped},
			"Skipped stay, SkippedByAnnotation: annotation sailoperator.io/skip-migration is set, but new pods of it start on the target revision", false,
		},
		"retried once, and the request is gone": {
			[]part{migrating}, []option{halfway, moved(1100, 2, func(m *Mark) { gaveUp(m); m.Retry = request })},
			"Failed restart, batch 2, until 5m0s, ReadinessTimeout: not ready in time", false,
		},
		"it never got there, its batch is over, and that could not be written down": {
			[]part{migrating, next}, []option{halfway, moved(0, 2)},
			"Failed restart, batch 2, 1/2 ready, until 31m40s, ReadinessTimeout: Readiness timeout exceeded after 5m0s", true,
		},
		"it never got there, the migration is over, and that could not be written down": {
			[]part{migrated(v1.WorkloadMigrationStateFailed, 900)}, []option{halfway, moved(0, 2)},
			"Failed restart, batch 2, 1/2 ready, until 31m40s, ReadinessTimeout: Readiness timeout exceeded after 5m0s", true,
		},

		// What cannot be written is not tried at once again.
		"the API server will not have it written down": {
			[]part{migrating, refuses("shop/cart", "policy says no")}, []option{halfway, moved(1000, 2)},
			"Failed restart, batch 2, 1/2 ready, until 31m40s, ReadinessTimeout: Readiness timeout exceeded after 5m0s", false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observed(append(tc.parts, namespace("shop", rev(target)), namespace("web", rev(target)), deploy("shop/cart", tc.cart...))...)
			if strings.Contains(name, "taken") {
				namespace("shop", "")(&o)
			}
			d := decide(o, at(now))
			got := ""
			for _, s := range Plan(o, at(now)).Steps {
				if s.Object.Name == "cart" {
					got = tellStep(s)
				}
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if write := len(d.endedMoves) > 0 && d.endedMoves[0].Name == "cart"; write != tc.write {
				t.Errorf("to be written down: %t, want %t", write, tc.write)
			}
		})
	}
}

// TestMovedElsewhere is about Deployments with a mark that is about a revision which was the target before.
func TestMovedElsewhere(t *testing.T) {
	toOld := func(m *Mark) { m.Target, m.From = old, oldest }
	cases := map[string]struct {
		cart     []option
		underway bool
		// failed is what is to be written down.
		failed string
	}{
		"underway":      {cart: []option{runs(oldest, 1), runs(old, 1), says("1 of 2 new, 2 ready"), moved(1800, 1, toOld)}, underway: true},
		"done long ago": {cart: []option{runs(old, 2), since("NewReplicaSetAvailable", 20), moved(0, 1, toOld)}},
		"failed, known": {cart: []option{runs(oldest, 2), moved(0, 1, toOld, gaveUp)}},
		"failed, not yet known": {
			cart: []option{runs(oldest, 2), runs(old, 1), says("1 of 3 new, 2 ready"), since("ReplicaSetUpdated", 1), moved(0, 1, toOld)}, failed: "Readiness timeout exceeded after 5m0s",
		},
		"one of its pods was made anew, and is on the target by the label of its namespace": {
			cart: []option{runs(old, 1), runs(target, 1), since("NewReplicaSetAvailable", 20), moved(0, 1, toOld)},
		},
		"the same, and it is not ready yet": {
			cart: []option{runs(old, 1), runs(target, 1), undated, says("2 of 2 new, 1 ready"), moved(0, 1, toOld)},
		},
		"rolled out by somebody else, and on the target thereby": {
			cart: []option{runs(target, 2), since("NewReplicaSetAvailable", 1800), changed, moved(0, 1, toOld)},
		},
		"being rolled out by somebody else": {
			cart: []option{runs(old, 2), runs(target, 1), says("1 of 3 new, 2 ready"), since("ReplicaSetUpdated", 1890), changed, moved(0, 1, toOld)},
		},
		"taken back to where it came from": {
			cart: []option{runs(oldest, 2), since("NewReplicaSetAvailable", 1800), changed, moved(0, 1, toOld)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(observed(migrating, namespace("shop", rev(target)), deploy("shop/cart", tc.cart...)), at(1900))
			failed := ""
			for _, e := range d.endedMoves {
				failed = e.mark.Reason.Message
			}
			if underway := d.abandoned > 0; underway != tc.underway || failed != tc.failed {
				t.Errorf("underway %t, failed %q; want %t, %q", underway, failed, tc.underway, tc.failed)
			}
		})
	}
}

func relabelled(m *Mark) { m.Action = ActionRelabel }

func tellStep(s passage.Step) string {
	text := fmt.Sprintf("%s %s", s.State, s.Action)
	if s.Held {
		text += " held"
	}
	if s.Batch > 0 {
		text += fmt.Sprintf(", batch %d", s.Batch)
	}
	if s.Priority != 0 {
		text += fmt.Sprintf(", priority %d", s.Priority)
	}
	if s.Progress != "" {
		text += ", " + s.Progress
	}
	if !s.EndedAt.IsZero() {
		text += ", until " + s.EndedAt.Sub(epoch).String()
	}
	return text + ", " + s.Reason.String()
}

// TestPlanOfNoTarget is a plan that cannot be made.
func TestPlanOfNoTarget(t *testing.T) {
	o := observed(namespace("shop", rev(old)), deploy("shop/cart", runs(old, 2)))
	o.Istio.Status.ActiveRevisionName = ""
	o.Target = o.activeTarget()
	plan := Plan(o, epoch)
	if plan.Hold == nil || plan.Hold.String() != "RevisionNotActive: Istio default has no active revision yet" || len(plan.Steps) != 0 {
		t.Errorf("held by %v, with steps %v", plan.Hold, plan.Steps)
	}
}

func TestTarget(t *testing.T) {
	cases := map[string]struct {
		change func(*Observed)
		want   Target
	}{
		"ready": {func(*Observed) {}, Target{Name: target, Version: "v1.26.0"}},
		"a spec that nobody has looked at yet": {
			func(o *Observed) { o.Istio.Generation = 2 },
			Target{Name: target, Hold: passage.Hold(v1.ReasonRevisionNotActive, "the spec of Istio default has changed and is not reconciled yet")},
		},
		"a revision that does not exist": {
			only(old),
			Target{Name: target, Hold: passage.Hold(v1.ReasonRevisionNotActive, "IstioRevision default-v1-26-0, the active one, does not exist")},
		},
		"ready, but that was said of another spec": {
			func(o *Observed) { o.revision(target).Generation = 2 },
			Target{Name: target, Version: "v1.26.0", Hold: passage.Hold(v1.ReasonRevisionNotReady, "IstioRevision default-v1-26-0 is not ready; workloads move when it is")},
		},
		"not ready": {
			func(o *Observed) { o.revision(target).Status.Conditions[0].Status = metav1.ConditionFalse },
			Target{Name: target, Version: "v1.26.0", Hold: passage.Hold(v1.ReasonRevisionNotReady, "IstioRevision default-v1-26-0 is not ready; workloads move when it is")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observed(tc.change)
			if diff := cmp.Diff(tc.want, o.activeTarget()); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
		})
	}
}
