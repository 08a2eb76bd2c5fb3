package workload

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

func frozen(name string) func(client.Object) error {
	return func(o client.Object) error {
		if o.GetNamespace()+"/"+o.GetName() == name {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, o.GetName(), errors.New("frozen"))
		}
		return nil
	}
}

// TestGoingBackAfterRefusal ends: what was refused is in nobody's plan any more.
func TestGoingBackAfterRefusal(t *testing.T) {
	reported := story{setup: func(c *cluster) {
		c.settings(3, "0s")
		c.shop("a b")
		c.refuses = frozen("shop/b")
		c.upgradeOn(0, "v1.26.0")
		c.upgradeOn(120, "v1.24.0")
	}}.play(t)
	if !strings.Contains(reported, "Completed, 2 of 2 migrated") && !strings.Contains(reported, "Completed, 1 of 1 migrated") {
		t.Errorf("it does not end:\n%s", reported)
	}
}

// TestPodsHeardOfLate: a Deployment says that its pods are there, and the cache of pods has not heard of them for much longer
// than that should take. They are where they belong all the same.
func TestPodsHeardOfLate(t *testing.T) {
	out := story{setup: func(c *cluster) {
		c.settings(3, "0s").FailurePolicy = v1.FailurePolicyFailFast
		c.shop("a b")
		c.podsHeard = at(300)
		c.upgradeOn(0, "v1.26.0")
	}}.play(t)
	if strings.Contains(out, "ailed") || !strings.Contains(out, "Completed, 2 of 2 migrated") {
		t.Errorf("a cache that is behind has failed the migration:\n%s", out)
	}
}

// TestOutageIsNoContest although the label of a namespace cannot be written again and again.
func TestOutageIsNoContest(t *testing.T) {
	out := story{setup: func(c *cluster) {
		c.settings(3, "0s")
		c.shop("a b")
		c.refuses = func(o client.Object) error {
			if o.GetNamespace() == "" && c.now.Before(at(15)) {
				return apierrors.NewServiceUnavailable("restarting")
			}
			return nil
		}
		c.upgradeOn(0, "v1.26.0")
	}}.play(t)
	if strings.Contains(out, "Failed") {
		t.Errorf("an outage of seconds has failed the migration for good:\n%s", out)
	}
}

// TestConflictsAreNoContest likewise.
func TestConflictsAreNoContest(t *testing.T) {
	o := observed(migrating, namespace("shop", rev(old)))
	w, r := recordingWriter(apierrors.NewConflict(schema.GroupResource{}, "shop", errors.New("busy")))
	for range 3 {
		_ = w.applySteps(t.Context(), o, epoch, decide(o, at(60)).Start)
	}
	r.err = nil
	_ = w.applySteps(t.Context(), o, epoch, decide(o, at(60)).Start)
	w.addRefusals(&o)
	for _, f := range decide(o, at(60)).Plan.Failures() {
		t.Errorf("nothing was ever written, and it says: %s", f.Reason.Message)
	}
}

// TestFailureThatCannotBeWrittenDown does not keep others from being moved.
func TestFailureThatCannotBeWrittenDown(t *testing.T) {
	c := newCluster(t)
	c.settings(1, "30s")
	c.namespace("shop", rev(old))
	c.deploy("shop/a", brokenOn(target))
	c.deploy("shop/b")
	down := false
	c.refuses = func(o client.Object) error {
		if down && o.GetName() == "a" {
			return apierrors.NewInternalError(errors.New("failed calling webhook"))
		}
		return nil
	}
	c.upgradeOn(0, "v1.26.0")
	c.on(60, "webhook down", func() { down = true })
	c.on(3600, "an hour later", func() {
		if on := c.apps["shop/b"].runsOn(); on != target {
			t.Errorf("after an hour b runs on %s, %d status writes", on, c.statuses)
		}
		down = false
	})
	c.run(func() bool { return true }, 0)
}

// TestFailureIsWrittenDownLater when that is possible again.
func TestFailureIsWrittenDownLater(t *testing.T) {
	c := newCluster(t)
	c.settings(1, "0s")
	c.namespace("shop", rev(old))
	a := c.deploy("shop/a", brokenOn(target))
	down := false
	c.refuses = func(o client.Object) error {
		if down {
			return frozen("shop/a")(o)
		}
		return nil
	}
	c.upgradeOn(0, "v1.26.0")
	c.on(60, "frozen", func() { down = true })
	c.on(600, "no longer", func() { down = false })
	c.on(1600, "", func() {
		if m := markOn(a.Deployment); m.Failed.IsZero() {
			t.Errorf("the failure is not on the workload though it may be written for %s: %s", c.now.Sub(at(600)), m)
		}
	})
	c.on(1700, "owner adds an annotation", func() { a.edit(func(d *appsv1.Deployment) { d.Annotations["team"] = "x" }) })
	c.run(func() bool { return true }, 0)
	c.start(func() bool { return true })
	c.controllers.work()
	if got := c.istio.Status.WorkloadMigration; got.State != v1.WorkloadMigrationStateFailed {
		t.Errorf("the failure is forgotten: %s, %d of %d", got.State, got.MigratedWorkloads, got.TotalWorkloads)
	}
}

// TestScalingWhatIsRefused does not begin the migration anew.
func TestScalingWhatIsRefused(t *testing.T) {
	started := 0
	c := newCluster(t)
	c.settings(3, "0s")
	c.shop("a b")
	c.refuses = frozen("shop/b")
	c.upgradeOn(0, "v1.26.0")
	for i := range 3 {
		c.on(100+60*i, "", func() {
			c.apps["shop/b"].edit(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(3 + i)) })
		})
	}
	c.on(800, "", func() {
		if started > 1 {
			t.Errorf("scaled 3 times, MigrationStarted %d times, %d status writes", started, c.statuses)
		}
		c.refuses = nil
	})
	c.tell = func(f string, a ...any) {
		if strings.Contains(fmt.Sprintf(f, a...), "MigrationStarted") {
			started++
		}
	}
	c.run(func() bool { return true }, 0)
}

// TestEveryRefusalIsReported on the workload itself, however many there are.
func TestEveryRefusalIsReported(t *testing.T) {
	events := map[string]bool{}
	c := newCluster(t)
	c.settings(20, "0s")
	c.shop("a b c d e f g h i j k l")
	c.refuses = func(o client.Object) error { return frozen("shop/" + o.GetName())(o) }
	c.upgradeOn(0, "v1.26.0")
	c.on(300, "", func() { c.refuses = nil })
	c.tell = func(f string, a ...any) {
		if s := fmt.Sprintf(f, a...); strings.Contains(s, "cannot be moved") {
			events[strings.Fields(s)[3]] = true
		}
	}
	c.run(func() bool { return true }, 0)
	if len(events) != 12 {
		t.Errorf("12 refused, events on %d", len(events))
	}
}

// TestConditionWithALabelLeft is not met, although no Deployment is to be moved.
func TestConditionWithALabelLeft(t *testing.T) {
	o := observed(pausedIstio, namespace("shop", rev(old)), unmanagedWorkload("apps/v1 StatefulSet shop/db", old, 1))
	if c := migratedConditionOf(o, decide(o, at(60)).Decision); c.Status == metav1.ConditionTrue {
		t.Errorf("paused with a label left to move, and it is %s: %s", c.Reason, c.Message)
	}
}

// TestContestOfAnotherTarget is over.
func TestContestOfAnotherTarget(t *testing.T) {
	o := observed(migrating, namespace("shop", rev(old)))
	w, _ := recordingWriter(nil)
	for range 4 {
		_ = w.applySteps(t.Context(), o, epoch, decide(o, at(60)).Start)
	}
	next := "default-v1-27-0"
	o.Revisions = append(o.Revisions, makeRevision(next, "v1.27.0", "default"))
	o.Target = Target{Name: next, Version: "v1.27.0"}
	w.addRefusals(&o)
	for _, f := range decide(o, at(7200)).Plan.Failures() {
		t.Errorf("to %s: %s", f.To, f.Reason.Message)
	}
}

// TestWhatIsGoneIsForgotten by everything that remembers.
func TestWhatIsGoneIsForgotten(t *testing.T) {
	o := observed(migrating, namespace("shop", rev(old)))
	w, _ := recordingWriter(nil)
	_ = w.applySteps(t.Context(), o, epoch, decide(o, at(60)).Start)
	w2, _ := recordingWriter(apierrors.NewInternalError(errors.New("x")))
	p := observed(migrating, namespace("shop", rev(target)), deploy("shop/cart", runs(old, 2)))
	_ = w2.applySteps(t.Context(), p, epoch, decide(p, at(60)).Start)
	w3, _ := recordingWriter(apierrors.NewBadRequest("x"))
	q := observed(migrating, namespace("shop", rev(target)), deploy("shop/cart", moved(0, 1), halfway))
	_ = w3.recordOutcome(t.Context(), q, decide(q, at(600)).endedMoves[0])
	gone := observed(migrating)
	for _, w := range []*writer{w, w2, w3} {
		w.now = func() time.Time { return at(600000) }
		w.addRefusals(&gone)
		relabels := 0
		w.relabels.Forget(func(relabelKey) bool { relabels++; return true })
		if n := relabels + len(w.transient) + len(w.unwritten) + len(w.refused); n > 0 {
			t.Errorf("relabels %d failing %d unwritten %d refused %d of what is gone", relabels, len(w.transient), len(w.unwritten), len(w.refused))
		}
	}
}

// TestRestoreFailuresOfManyNamespaces although the status has no room for all of them.
func TestRestoreFailuresOfManyNamespaces(t *testing.T) {
	var parts []part
	for i := range 11 {
		parts = append(parts, namespace(fmt.Sprintf("n%02d", i), rev(old)), deploy(fmt.Sprintf("n%02d/a", i), runs(old, 2)))
	}
	o := observed(append(parts, migrating)...)
	for i := range 11 {
		refuses(fmt.Sprintf("n%02d", i), "contested")(&o)
	}
	for uid, r := range o.Refused {
		r.At = at(30)
		o.Refused[uid] = r
	}
	status := statusOf(o, decide(o, at(60)), at(60))
	o.Istio.Status.WorkloadMigration, o.Refused = status, nil
	o.restoreFailures()
	if d := decide(o, at(61)); !d.Settled() {
		t.Errorf("operator: %s; CLI: %s, would start %v", status.State, d.Outcome, d.Start[0].Object)
	}
}

// TestPlanForAnotherTarget does not know the failures on the way to this one.
func TestPlanForAnotherTarget(t *testing.T) {
	why := passage.Because(v1.ReasonTimeout, "Readiness timeout exceeded after 5m0s")
	parts := []part{namespace("shop", rev(target)), migrated(v1.WorkloadMigrationStateFailed, 900)}
	for i := range 11 {
		parts = append(parts, deploy(fmt.Sprintf("shop/bad%02d", i), moved(0, 1, func(m *Mark) { m.Failed, m.Reason = at(300), &why }), halfway))
	}
	for i := range 50 {
		parts = append(parts, deploy(fmt.Sprintf("shop/good%02d", i), moved(0, 1), arrived(20)))
	}
	o := observed(parts...)
	st := o.Istio.Status.WorkloadMigration
	d := decide(o, at(1000))
	*st = *statusOf(o, d, at(1000))
	next := Target{Name: "default-v1-27-0", Version: "v1.27.0"}
	operator := Plan(o.WithTarget(next), at(1001)).Counts()
	o.restoreFailures()
	cli := Plan(o.WithTarget(next), at(1001)).Counts()
	if cli != operator {
		t.Errorf("plan --version says %+v, the operator does %+v", cli, operator)
	}
}

// TestNobodyAsksAboutOthers again and again: what was refused may be in another plan, or in none.
func TestNobodyAsksAboutOthers(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "cart", errors.New("no"))
	for name, after := range map[string]part{
		"pinned by a tag":  func(o *Observed) { tag("stable", "IstioRevision/"+old, old)(o); namespace("shop", rev("stable"))(o) },
		"target went back": func(o *Observed) { o.Target = Target{Name: old}; namespace("shop", rev(old))(o) },
		"other Istio": func(o *Observed) {
			i := makeIstio("other")
			o.Istio, o.Target = i, Target{Name: foreign24}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(migrating, namespace("shop", rev(target)), deploy("shop/cart", runs(old, 2)))
			w, _ := recordingWriter(forbidden)
			_ = w.applySteps(t.Context(), o, epoch, decide(o, at(60)).Start)
			after(&o)
			now := at(60).Add(dryRunInterval + time.Second)
			w.now = func() time.Time { return now }
			r := &reconciler{writer: w, now: w.now}
			for range 3 {
				w.addRefusals(&o)
				d := decide(o, now)
				w.dryRunRefused(t.Context(), o, d.Plan.Failures())
				if again := r.requeueAfter(o, d, 0); again > 0 && again < time.Second {
					t.Errorf("looks again after %s", again)
				}
				now = now.Add(time.Minute)
			}
		})
	}
}

// TestRevisionMadeByHand is nobody's business when it is gone for a moment.
func TestRevisionMadeByHand(t *testing.T) {
	o := observed(migrating, namespace("lab", rev("default-v1-26-0-lab")), deploy("lab/a", runs("default-v1-26-0-lab", 2)))
	mine := makeRevision("default-v1-26-0-lab", "v1.26.0", "x")
	mine.OwnerReferences = nil
	gone := decide(o, at(60))
	o.Revisions = append(o.Revisions, mine)
	if there := decide(o, at(60)); len(there.Start) > 0 {
		t.Errorf("it is there: %v", there.Start)
	}
	for _, s := range gone.Start {
		t.Errorf("gone for a moment: %s %s from %s to %s", s.Action, s.Object, s.From, s.To)
	}
}

// TestTroubleLongAgo does not count.
func TestTroubleLongAgo(t *testing.T) {
	o := observed(migrating, namespace("shop", rev(target)), deploy("shop/cart", runs(old, 2)))
	w, _ := recordingWriter(apierrors.NewInternalError(errors.New("etcdserver: leader changed")))
	_ = w.applySteps(t.Context(), o, epoch, decide(o, at(60)).Start)
	// paused for an hour, resumed
	w.now = func() time.Time { return at(3660) }
	_ = w.applySteps(t.Context(), o, epoch, decide(o, at(3660)).Start)
	w.addRefusals(&o)
	if len(o.Refused) > 0 {
		t.Error("refused at its first trouble in an hour")
	}
}

// TestContestIsNotBegunAnew by whatever else is written to the namespace.
func TestContestIsNotBegunAnew(t *testing.T) {
	c := newCluster(t)
	c.settings(3, "0s")
	c.shop("a")
	c.namespace("other", "")
	c.upgradeOn(0, "v1.26.0")
	started, relabels := 0, 0
	c.tell = func(f string, a ...any) {
		s := fmt.Sprintf(f, a...)
		if strings.Contains(s, "MigrationStarted") {
			started++
		}
		if strings.HasPrefix(s, "relabel") {
			relabels++
		}
	}
	for i := range 40 {
		c.on(60+60*i, "", func() {
			// Argo syncs: sets the label back, and notes that on the namespace.
			ns := c.namespaces["shop"]
			ns.Labels = labelled(rev(old))
			ns.ResourceVersion = c.nextVersion()
			c.controllers.saw(kindNamespace, ns, false)
			c.unmanagedWorkload("Job", fmt.Sprintf("other/j%d", i), foreign24)
		})
	}
	c.run(func() bool { return true }, 0)
	if relabels > 4 {
		t.Errorf("started %d, relabelled %d, %d status writes in 40 minutes", started, relabels, c.statuses)
	}
}

// TestRetryInTheSameSecond as the end of the migration does not hide what was refused.
func TestRetryInTheSameSecond(t *testing.T) {
	c := newCluster(t)
	c.settings(3, "0s")
	c.shop("a")
	c.refuses = func(o client.Object) error {
		if o.GetNamespace() == "" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, o.GetName(), errors.New("walled"))
		}
		return nil
	}
	c.upgradeOn(0, "v1.26.0")
	look := func(when string) {
		o, err := Observe(t.Context(), c.controllers.api, "default", c.controllers.reconciler.inventory.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		d := decide(o, c.now)
		if o.Istio.Status.WorkloadMigration.State == "Failed" && !d.Settled() {
			t.Errorf("%s: the operator says %s, and the CLI waits", when, o.Istio.Status.WorkloadMigration.State)
		}
	}
	c.on(90, "", func() { look("before") })
	c.later(100*time.Second+500*time.Millisecond, "retry", func() { c.change(annotate("fairlead.dev/retry", c.now.Format(time.RFC3339Nano))) })
	c.on(200, "", func() { look("after a retry"); c.refuses = nil })
	c.run(func() bool { return true }, 0)
}
