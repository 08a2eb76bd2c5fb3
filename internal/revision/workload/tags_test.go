package workload

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// TestTagsThatHaveNotMoved has what becomes of a workload that chooses through a tag, and of one that does not.
func TestTagsThatHaveNotMoved(t *testing.T) {
	const others = "Pending restart, batch 1, OnOldRevision: its pods still run the old revision"
	cases := map[string]struct {
		tag  part
		want string
	}{
		"leads to the target": {tag("prod", "Istio/default", target), "Pending restart, batch 1, OnOldRevision: through IstioRevisionTag prod"},
		"has not moved yet":   {tag("prod", "Istio/default", old), "Pending restart held, TagNotMoved: IstioRevisionTag prod has not moved yet to default-v1-26-0"},
		"leads nowhere yet":   {tag("prod", "Istio/default", ""), "Pending restart held, TagNotMoved: IstioRevisionTag prod has not moved yet to default-v1-26-0"},
		"says why it cannot move": {
			tag("prod", "Istio/default", old, unreconciled(v1.ReasonOwnedByOthers, "webhook belongs to istioctl")),
			"Pending restart held, TagNotMoved: IstioRevisionTag prod has not moved yet to default-v1-26-0: webhook belongs to istioctl",
		},
		"waits for a target that is ready by now": {
			tag("prod", "Istio/default", old, unreconciled(v1.ReasonIstiodNotReady, "IstioRevision default-v1-26-0 is not ready")),
			"Pending restart held, TagNotMoved: IstioRevisionTag prod has not moved yet to default-v1-26-0",
		},
		"is paused": {
			tag("prod", "Istio/default", old, pausedTag),
			"Skipped stay, TagNotMoved: uses IstioRevisionTag prod, which is paused; resume with `fairlead resume istiorevisiontag prod`",
		},
		"is being deleted": {
			tag("prod", "Istio/default", old, deletedTag), "Skipped stay, TagNotMoved: uses IstioRevisionTag prod, which is being deleted",
		},
		"is fixed": {
			tag("prod", "IstioRevision/"+old, old),
			"Skipped stay, PinnedByTag: pinned by IstioRevisionTag prod, which is fixed to IstioRevision default-v1-24-0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observed(migrating, batchSize(5), namespace("shop", rev(target)), namespace("tagged", rev("prod")), namespace("pods", ""), tc.tag,
				deploy("pods/a", podLabels(rev("prod")), runs(old, 2)), deploy("shop/a", runs(old, 2)), deploy("tagged/a", runs(old, 2)))
			d := decide(o, at(60))
			want := map[string]string{"pods": tc.want, "shop": others, "tagged": tc.want}
			for _, step := range d.Plan.Steps {
				if got := tellStep(step); got != want[step.Object.Namespace] {
					t.Errorf("%s:\ngot  %s\nwant %s", step.Object, got, want[step.Object.Namespace])
				}
			}
			if len(d.Start) == 0 || d.Plan.Hold != nil {
				t.Errorf("nothing starts: %v", d.Reason)
			}
		})
	}
}

// TestBrokenTagHoldsOnlyItsOwn through a whole migration. The condition and an event name the tag and why it does not move;
// when it does, its workloads follow.
func TestBrokenTagHoldsOnlyItsOwn(t *testing.T) {
	c := newCluster(t)
	c.settings(2, "10s")
	c.tags = []v1.IstioRevisionTag{*makeTag("prod", "Istio/default", old)}
	c.shop("a b")
	c.namespace("web", rev("prod"))
	c.deploy("web/c")
	c.deploy("web/d")
	c.tagsBroken = "MutatingWebhookConfiguration istio-revision-tag-prod belongs to istioctl"
	var events []string
	c.tell = func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); strings.Contains(text, "TagNotMoved: ") && strings.HasPrefix(text, "event") {
			events = append(events, text)
		}
	}
	c.upgradeOn(0, "v1.26.0")
	const why = "IstioRevisionTag prod has not moved yet to default-v1-26-0: MutatingWebhookConfiguration istio-revision-tag-prod belongs to istioctl"
	c.on(300, "", func() {
		for name, want := range map[string]string{"shop/a": target, "shop/b": target, "web/c": old, "web/d": old} {
			if on := c.apps[name].runsOn(); on != want {
				t.Errorf("after 5m, %s runs on %s, want %s", name, on, want)
			}
		}
		status := c.istio.Status.WorkloadMigration
		if status.State != v1.WorkloadMigrationStateInProgress || status.MigratedWorkloads != 2 || status.TotalWorkloads != 4 {
			t.Errorf("after 5m, the status is %+v", status)
		}
		want := "Deployment web/c and 1 more wait: " + why
		if got := migratedCondition(c.istio); got.Status != metav1.ConditionFalse || got.Reason != string(v1.ReasonTagNotMoved) || got.Message != want {
			t.Errorf("after 5m, it says %s %s: %s", got.Status, got.Reason, got.Message)
		}
		c.tagsBroken = ""
		c.tags[0].Status.Conditions, c.tags[0].Status.IstioRevision = nil, target
		c.sailChanged()
	})
	c.run(func() bool { return true }, 0)
	if status := c.istio.Status.WorkloadMigration; status.State != v1.WorkloadMigrationStateCompleted || status.MigratedWorkloads != 4 {
		t.Errorf("in the end, the status is %+v", status)
	}
	want := "event    warning on Istio: TagNotMoved: " + why + "; workloads that use the tag wait"
	if len(events) != 1 || events[0] != want {
		t.Errorf("events %q, want %q once", events, want)
	}
}

// TestTagsOfAFutureTarget: a plan for a revision that is not the target yet says what happens once its tags have moved.
func TestTagsOfAFutureTarget(t *testing.T) {
	o := observed(migrating, namespace("tagged", rev("prod")), tag("prod", "Istio/default", old), deploy("tagged/a", runs(old, 2)))
	o.Istio.Status.ActiveRevisionName = old
	d := decide(o.WithTarget(o.FutureTarget("default-v1-27-0", "v1.27.0")), at(60))
	for _, step := range d.Plan.Steps {
		if step.Held || step.Batch != 1 {
			t.Errorf("%s: %s", step.Object, tellStep(step))
		}
	}
}
