package workload

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// TestCondition has what WorkloadsMigrated says in one sentence, at a minute after the epoch.
func TestCondition(t *testing.T) {
	shop := namespace("shop", rev(target))
	behind := deploy("shop/cart", runs(old, 2))
	broken := deploy("shop/cart", halfway, moved(0, 1, gaveUp))
	said := func(status metav1.ConditionStatus) part {
		return with(func(i *v1.Istio) {
			i.Status.Conditions = []metav1.Condition{{Type: string(v1.ConditionWorkloadsMigrated), Status: status}}
		})
	}
	const disabled = "False MigrationDisabled: workloads are not moved: spec.updateStrategy.workloadMigration.strategy is not set; Batched moves workloads"
	cases := map[string]struct {
		parts []part
		want  string // empty: none
	}{
		"nothing to move": {nil, "True Migrated: no Deployment is left to be moved to default-v1-26-0"},
		"nothing to move, whatever would hold it": {
			[]part{pausedIstio, maxVersion("1.0.0")}, "True Migrated: no Deployment is left to be moved to default-v1-26-0",
		},
		"to be moved": {[]part{shop, behind}, "False Migrating: Deployments are being moved to default-v1-26-0"},
		"underway":    {[]part{shop, migrating, deploy("shop/cart", halfway, moved(0, 1))}, "False Migrating: Deployments are being moved to default-v1-26-0"},
		"held":        {[]part{shop, behind, pausedIstio}, "False Paused: paused by annotation fairlead.dev/paused; resume with `fairlead resume istio default`"},
		"held, and one is underway": {
			[]part{shop, migrating, deploy("shop/cart", halfway, moved(0, 1)), maxVersion("1.25.0")},
			"False MaxVersionExceeded: v1.26.0 is above batched.maxVersion 1.25.0; raise it, and workloads move to default-v1-26-0",
		},
		"nothing to move to yet": {[]part{notReady}, "False RevisionNotReady: IstioRevision default-v1-26-0 is not ready; workloads move when it is"},
		"no target": {
			[]part{func(o *Observed) { o.Istio.Status.ActiveRevisionName = ""; o.Target = o.activeTarget() }},
			"False RevisionNotActive: Istio default has no active revision yet",
		},
		"on the way elsewhere": {
			[]part{shop, elsewhere("shop/cart")}, "False Migrating: Deployments are being moved to default-v1-26-0",
		},
		"failed": {
			[]part{shop, migrating, broken},
			"False MigrationFailed: Deployment shop/cart failed, all others have settled; see status.workloadMigration.failures, and try again with `fairlead retry istio default`",
		},
		"failed, and others go on": {
			[]part{shop, migrating, broken, deploy("shop/pay", runs(old, 2))}, "False Migrating: Deployments are being moved to default-v1-26-0",
		},
		"failed first of all": {
			[]part{shop, migrating, failFast, broken, deploy("shop/pay", runs(old, 2))},
			"False MigrationFailed: Deployment shop/cart failed: nothing more starts until that is retried, 1 left; see status.workloadMigration.failures, and try again with `fairlead retry istio default`",
		},
		"a label that cannot be moved": {
			[]part{namespace("shop", rev(old)), refuses("shop", "no")},
			"False MigrationFailed: Namespace shop failed, all others have settled; see status.workloadMigration.failures, and try again with `fairlead retry istio default`",
		},
		"some stay": {
			[]part{shop, deploy("shop/cart", runs(old, 2), skipped), unmanagedWorkload("apps/v1 StatefulSet shop/db", old, 1)},
			"True Migrated: no Deployment is left to be moved to default-v1-26-0; not moved: Deployment shop/cart (SkippedByAnnotation), StatefulSet shop/db (KindNotMoved)",
		},
		"tags that do not move": {
			[]part{
				shop, namespace("web", rev("prod")), tag("prod", "Istio/default", old, pausedTag), deploy("web/a", runs(old, 2)), deploy("web/b", runs(old, 2)),
				namespace("lab", rev("trial")), tag("trial", "Istio/default", old, deletedTag), deploy("lab/a", runs(old, 2)),
			},
			"True Migrated: no Deployment is left to be moved to default-v1-26-0; not moved: " +
				"Deployment lab/a (TagNotMoved: uses IstioRevisionTag trial, which is being deleted), " +
				"Deployment web/a (TagNotMoved: uses IstioRevisionTag prod, which is paused; resume with `fairlead resume istiorevisiontag prod`), " +
				"Deployment web/b (TagNotMoved)",
		},
		"many stay": {
			[]part{shop, deployments(9, func(int) []option { return []option{runs(old, 2), skipped} })},
			"True Migrated: no Deployment is left to be moved to default-v1-26-0; not moved: Deployment shop/w01 (SkippedByAnnotation), " +
				"Deployment shop/w02 (SkippedByAnnotation), Deployment shop/w03 (SkippedByAnnotation), Deployment shop/w04 (SkippedByAnnotation), " +
				"Deployment shop/w05 (SkippedByAnnotation) and 4 more",
		},
		"switched off, and never on":            {[]part{shop, behind, switchedOff}, ""},
		"switched off after the end":            {[]part{shop, behind, switchedOff, said(metav1.ConditionTrue)}, ""},
		"switched off in the middle":            {[]part{shop, behind, switchedOff, said(metav1.ConditionFalse)}, disabled},
		"switched off, and nothing was left":    {[]part{shop, switchedOff, said(metav1.ConditionFalse)}, ""},
		"being deleted, with workloads left":    {[]part{shop, behind, deletedIstio}, "False BeingDeleted: Istio default is being deleted; nothing more is moved"},
		"being deleted, with no workloads left": {[]part{deletedIstio}, "True Migrated: no Deployment is left to be moved to default-v1-26-0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observed(tc.parts...)
			condition := migratedConditionOf(o, decide(o, at(60)).Decision)
			got := ""
			if condition != nil {
				got = fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
				if condition.ObservedGeneration != o.Istio.Generation {
					t.Errorf("it is said of generation %d", condition.ObservedGeneration)
				}
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestConditionTime is since when its status is so, whatever its reason.
func TestConditionTime(t *testing.T) {
	o := observed(namespace("shop", rev(target)), deploy("shop/cart", runs(old, 2)))
	d := decide(o, at(60))
	for name, tc := range map[string]struct {
		reported *metav1.Condition
		want     int
	}{
		"the first time": {nil, 60},
		"it was true":    {&metav1.Condition{Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(10))}, 60},
		"it was false for another reason": {
			&metav1.Condition{Status: metav1.ConditionFalse, Reason: "Paused", LastTransitionTime: metav1.NewTime(at(10))}, 10,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := timestampedCondition(o, d, tc.reported, at(60)).LastTransitionTime; !got.Time.Equal(at(tc.want)) {
				t.Errorf("since %s", got.Sub(epoch))
			}
		})
	}
}

// TestNeedsPeople tells what is worth an event from what passes by itself.
func TestNeedsPeople(t *testing.T) {
	var people []string
	for _, reason := range []v1.Reason{
		v1.ReasonMigrated, v1.ReasonMigrating, v1.ReasonMigrationFailed, v1.ReasonMigrationDisabled, v1.ReasonNotRevisionBased, v1.ReasonInvalidSettings,
		v1.ReasonMaxVersionExceeded, v1.ReasonRevisionNotActive, v1.ReasonRevisionNotReady, v1.ReasonTagNotMoved, v1.ReasonPaused, v1.ReasonBeingDeleted,
		v1.ReasonInjectionFailed, v1.ReasonInjectionNotChecked,
	} {
		if needsUserAction(&metav1.Condition{Status: metav1.ConditionFalse, Reason: string(reason)}) {
			people = append(people, string(reason))
		}
	}
	if got, want := strings.Join(people, " "), "MigrationDisabled NotRevisionBased InvalidSettings MaxVersionExceeded Paused InjectionNotChecked"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
