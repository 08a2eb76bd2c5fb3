package workload

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// reported is a plan with a line for each step: its state, what is done to what, from where, and why.
func reported(plan passage.Plan) []string {
	var lines []string
	for _, s := range plan.Steps {
		lines = append(lines, fmt.Sprintf("%s %s %s from %q, %s", s.State, s.Action, s.Object, s.From, s.Reason))
		if s.To != plan.Target {
			lines = append(lines, fmt.Sprintf("  to %q", s.To))
		}
	}
	return lines
}

const (
	moveNamespace = `Pending relabel Namespace shop from "default-v1-24-0", NamesOldRevision: selected by label istio.io/rev`
	nextRestart   = "; its next restart picks up the revision"
)

// TestWhoMoves has a row for all that labels, tags, annotations and pods can say about a Deployment.
func TestWhoMoves(t *testing.T) {
	labelledShop := namespace("shop", rev(old))
	cases := map[string]struct {
		parts []part
		want  []string
	}{
		// Whose pods run, or whose labels name, another revision of this Istio.
		"label of the namespace": {
			[]part{labelledShop, deploy("shop/cart", runs(old, 2))},
			[]string{moveNamespace, `Pending restart Deployment shop/cart from "default-v1-24-0", OnOldRevision: selected by the namespace label`},
		},
		"label of the namespace was moved before": {
			[]part{namespace("shop", rev(target)), deploy("shop/cart", runs(old, 2))},
			[]string{`Pending restart Deployment shop/cart from "default-v1-24-0", OnOldRevision: its pods still run the old revision`},
		},
		"label of the pods": {
			[]part{namespace("shop", ""), deploy("shop/cart", podLabels(rev(old)), runs(old, 2))},
			[]string{`Pending relabel Deployment shop/cart from "default-v1-24-0", OnOldRevision: selected by the pod label`},
		},
		"label of the pods in a namespace that decides otherwise is moved with them": {
			[]part{labelledShop, deploy("shop/cart", podLabels(rev(oldest)), runs(old, 2))},
			[]string{moveNamespace, `Pending relabel Deployment shop/cart from "default-v1-24-0", OnOldRevision: selected by the pod label`},
		},
		"label of the pods that names the target, in a namespace that decides otherwise": {
			[]part{labelledShop, deploy("shop/cart", podLabels(rev(target)), runs(old, 2))},
			[]string{moveNamespace, `Pending restart Deployment shop/cart from "default-v1-24-0", OnOldRevision: selected by the namespace label`},
		},
		"label of the pods that names the old one, while they run on the target by their namespace": {
			[]part{namespace("shop", rev(target)), deploy("shop/cart", podLabels(rev(old)), runs(target, 2))},
			[]string{`Done relabel Deployment shop/cart from "default-v1-24-0", RunsOnTarget: its pods already run on default-v1-26-0`},
		},
		"istio-injection that means a revision of this Istio": {
			[]part{inPlace, namespace("shop", "istio-injection=enabled"), deploy("shop/cart", runs("default", 2))},
			[]string{
				`Pending relabel Namespace shop from "default", NamesOldRevision: selected by label istio-injection`,
				`Pending restart Deployment shop/cart from "default", OnOldRevision: selected by the namespace label`,
			},
		},
		"istio-injection beats istio.io/rev": {
			[]part{inPlace, namespace("shop", "istio-injection=enabled,istio.io/rev="+target), deploy("shop/cart", runs("default", 2))},
			[]string{
				`Pending relabel Namespace shop from "default", NamesOldRevision: selected by label istio-injection`,
				`Pending restart Deployment shop/cart from "default", OnOldRevision: selected by the namespace label`,
			},
		},
		"istio-injection that means a tag that follows this Istio": {
			[]part{tag("default", "Istio/default", target), namespace("shop", "istio-injection=enabled"), deploy("shop/cart", runs(old, 2))},
			[]string{`Pending restart Deployment shop/cart from "default-v1-24-0", OnOldRevision: through IstioRevisionTag default`},
		},
		"sidecar.istio.io/inject of the pods": {
			[]part{inPlace, namespace("shop", ""), deploy("shop/cart", podLabels("sidecar.istio.io/inject=true"), runs("default", 2))},
			[]string{`Pending relabel Deployment shop/cart from "default", OnOldRevision: selected by the pod label`},
		},
		"istio-injection of the pods": {
			[]part{inPlace, namespace("shop", ""), deploy("shop/cart", podLabels("istio-injection=enabled"), runs("default", 2))},
			[]string{`Pending relabel Deployment shop/cart from "default", OnOldRevision: selected by the pod label`},
		},
		"a tag that follows this Istio": {
			[]part{tag("prod", "Istio/default", target), namespace("shop", rev("prod")), deploy("shop/cart", runs(old, 2))},
			[]string{`Pending restart Deployment shop/cart from "default-v1-24-0", OnOldRevision: through IstioRevisionTag prod`},
		},
		"a tag that follows this Istio, on the pods": {
			[]part{tag("prod", "Istio/default", target), namespace("shop", ""), deploy("shop/cart", podLabels(rev("prod")), runs(old, 2))},
			[]string{`Pending restart Deployment shop/cart from "default-v1-24-0", OnOldRevision: through IstioRevisionTag prod`},
		},
		"pods of several old revisions": {
			[]part{labelledShop, deploy("shop/cart", runs(old, 1), runs(oldest, 1))},
			[]string{moveNamespace, `Pending restart Deployment shop/cart from "default-v1-22-0, default-v1-24-0", OnOldRevision: selected by the namespace label`},
		},
		"some pods on the target already": {
			[]part{namespace("shop", rev(target)), deploy("shop/cart", runs(old, 1), runs(target, 1))},
			[]string{`Pending restart Deployment shop/cart from "default-v1-24-0", OnOldRevision: its pods still run the old revision`},
		},
		"label that names the old one, pods without a sidecar": {
			[]part{namespace("shop", ""), deploy("shop/cart", podLabels(rev(old)), runs("", 2))},
			[]string{`Pending relabel Deployment shop/cart from "default-v1-24-0", NamesOldRevision: selected by the pod label`},
		},
		"two old revisions in two namespaces": {
			[]part{labelledShop, namespace("web", rev(oldest)), deploy("shop/cart", runs(old, 2)), deploy("web/front", runs(oldest, 2))},
			[]string{
				moveNamespace,
				`Pending relabel Namespace web from "default-v1-22-0", NamesOldRevision: selected by label istio.io/rev`,
				`Pending restart Deployment shop/cart from "default-v1-24-0", OnOldRevision: selected by the namespace label`,
				`Pending restart Deployment web/front from "default-v1-22-0", OnOldRevision: selected by the namespace label`,
			},
		},
		"a revision of this Istio that somebody has deleted": {
			[]part{namespace("shop", rev("default-v1-20-1")), deploy("shop/cart", runs("default-v1-20-1", 2))},
			[]string{
				`Pending relabel Namespace shop from "default-v1-20-1", NamesOldRevision: selected by label istio.io/rev`,
				`Pending restart Deployment shop/cart from "default-v1-20-1", OnOldRevision: selected by the namespace label`,
			},
		},
		"pods that were made while a label named nothing": {
			[]part{namespace("shop", rev(target)), deploy("shop/cart", runs(target, 1), runs("", 1), moved(-900, 1, earlierRun))},
			[]string{`Skipped stay Deployment shop/cart from "no sidecar", NoSidecar: some pods have no sidecar; the next restart injects that of default-v1-26-0`},
		},
		"pods without a sidecar that nobody has moved": {
			[]part{namespace("shop", rev(target)), deploy("shop/cart", runs("", 2))},
			nil,
		},
		"a name that only resembles one of this Istio": {
			[]part{namespace("shop", rev("default-v1-20")), deploy("shop/cart", runs("default-v1-20", 2))},
			nil,
		},

		// Without a restart.
		"pods run the target already, before the label of their namespace is moved": {
			[]part{labelledShop, deploy("shop/cart", runs(target, 2))},
			[]string{moveNamespace, `Done restart Deployment shop/cart from "default-v1-24-0", RunsOnTarget: its pods already run on default-v1-26-0`},
		},
		"scaled to zero, label of the pods": {
			[]part{namespace("shop", ""), deploy("shop/cart", podLabels(rev(old)), replicas(0), says("0 of 0 new, 0 ready"))},
			[]string{`Pending relabel Deployment shop/cart from "default-v1-24-0", NamesOldRevision: selected by the pod label`},
		},
		"scaled to zero, label of the namespace": {
			[]part{labelledShop, deploy("shop/cart", replicas(0), says("0 of 0 new, 0 ready"))},
			[]string{moveNamespace, `Skipped stay Deployment shop/cart from "default-v1-24-0", NoPods: it has no pods; new pods start on default-v1-26-0`},
		},
		"scaled to zero a moment ago, its last pod still counts": {
			[]part{labelledShop, deploy("shop/cart", replicas(0), runs(old, 1), says("0 of 0 new, 0 ready"))},
			[]string{moveNamespace, `Skipped stay Deployment shop/cart from "default-v1-24-0", NoPods: it has no pods; new pods start on default-v1-26-0`},
		},
		"none of its pods could be created": {
			[]part{labelledShop, deploy("shop/cart", says("0 of 0 new, 0 ready"))},
			[]string{moveNamespace, `Skipped stay Deployment shop/cart from "default-v1-24-0", NoPods: it has no pods; new pods start on default-v1-26-0`},
		},
		"pods without a sidecar in a namespace that names the old one": {
			[]part{labelledShop, deploy("shop/cart", runs("", 2))},
			[]string{moveNamespace, `Skipped stay Deployment shop/cart from "default-v1-24-0", NoSidecar: its pods have no sidecar; the next restart injects that of default-v1-26-0`},
		},

		// Nothing to do with this migration.
		"on the target":                          {[]part{namespace("shop", rev(target)), deploy("shop/cart", runs(target, 2))}, nil},
		"on the target through a tag":            {[]part{tag("prod", "Istio/default", target), namespace("shop", rev("prod")), deploy("shop/cart", runs(target, 2))}, nil},
		"outside the mesh":                       {[]part{namespace("shop", ""), deploy("shop/cart", runs("", 2))}, nil},
		"injection off, never had a sidecar":     {[]part{labelledInjectionOff, deploy("shop/cart", runs("", 2))}, nil},
		"on a revision of another Istio":         {[]part{namespace("shop", rev(foreign24)), deploy("shop/cart", runs(foreign24, 2))}, nil},
		"on a revision that nobody knows":        {[]part{namespace("shop", rev("gone")), deploy("shop/cart", runs("gone", 2))}, nil},
		"pinned, and not on an old revision":     {[]part{tag("prod", "IstioRevision/"+target, target), namespace("shop", rev("prod")), deploy("shop/cart", runs(target, 2))}, nil},
		"being deleted":                          {[]part{namespace("shop", ""), deploy("shop/cart", podLabels(rev(old)), runs(old, 2), beingDeleted)}, nil},
		"no namespace was seen":                  {[]part{deploy("shop/cart", runs("", 2))}, nil},
		"the control plane names its revision":   {[]part{namespace("istio-system", ""), deploy("istio-system/istiod-default-v1-24-0", podLabels(rev(old)+",sidecar.istio.io/inject=false"), runs("", 1))}, nil},
		"a namespace with nothing in it":         {[]part{labelledShop}, []string{moveNamespace}},
		"istio-injection of a foreign tag stays": {[]part{tag("default", "Istio/other", foreign24), namespace("shop", "istio-injection=enabled"), deploy("shop/cart", runs(foreign24, 2))}, nil},
		"nothing at all":                         {nil, nil},

		// Behind, and not touched.
		"annotated to be skipped": {
			[]part{labelledShop, deploy("shop/cart", runs(old, 2), skipped)},
			[]string{moveNamespace, `Skipped stay Deployment shop/cart from "default-v1-24-0", SkippedByAnnotation: annotation sailoperator.io/skip-migration is set, but new pods of it start on the target revision`},
		},
		"annotated to be skipped, with a label of its own": {
			[]part{namespace("shop", ""), deploy("shop/cart", podLabels(rev(old)), runs(old, 2), skipped)},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", SkippedByAnnotation: annotation sailoperator.io/skip-migration is set`},
		},
		"annotated to be skipped, through a tag": {
			[]part{tag("prod", "Istio/default", target), namespace("shop", rev("prod")), deploy("shop/cart", runs(old, 2), skipped)},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", SkippedByAnnotation: annotation sailoperator.io/skip-migration is set, but new pods of it start on the target revision`},
		},
		"annotated not to be skipped": {
			[]part{namespace("shop", ""), deploy("shop/cart", podLabels(rev(old)), runs(old, 2), annotated(v1.AnnotationSkipMigration, "false"))},
			[]string{`Pending relabel Deployment shop/cart from "default-v1-24-0", OnOldRevision: selected by the pod label`},
		},
		"spec.paused": {
			[]part{labelledShop, deploy("shop/cart", runs(old, 2), rolloutPaused)},
			[]string{moveNamespace, `Skipped stay Deployment shop/cart from "default-v1-24-0", DeploymentPaused: spec.paused is set` + nextRestart},
		},
		"spec.paused, with a label of its own": {
			[]part{namespace("shop", ""), deploy("shop/cart", podLabels(rev(old)), runs(old, 2), rolloutPaused)},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", DeploymentPaused: spec.paused is set`},
		},
		"a fixed tag": {
			[]part{tag("stable", "IstioRevision/"+old, old), namespace("shop", rev("stable")), deploy("shop/cart", runs(old, 2))},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", PinnedByTag: pinned by IstioRevisionTag stable, which is fixed to IstioRevision default-v1-24-0`},
		},
		"a fixed tag, on the pods": {
			[]part{tag("stable", "IstioRevision/"+old, old), namespace("shop", ""), deploy("shop/cart", podLabels(rev("stable")), runs(old, 2))},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", PinnedByTag: pinned by IstioRevisionTag stable, which is fixed to IstioRevision default-v1-24-0`},
		},
		"a fixed tag called default": {
			[]part{tag("default", "IstioRevision/"+old, old), namespace("shop", "istio-injection=enabled"), deploy("shop/cart", runs(old, 2))},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", PinnedByTag: pinned by IstioRevisionTag default, which is fixed to IstioRevision default-v1-24-0`},
		},
		"a tag that follows this Istio and is paused": {
			[]part{tag("prod", "Istio/default", old, pausedTag), namespace("shop", rev("prod")), deploy("shop/cart", runs(old, 2))},
			[]string{"Skipped stay Deployment shop/cart from \"default-v1-24-0\", TagNotMoved: uses IstioRevisionTag prod, which is paused; resume with `fairlead resume istiorevisiontag prod`"},
		},
		"a tag that follows this Istio and is being deleted": {
			[]part{tag("prod", "Istio/default", old, deletedTag), namespace("shop", rev("prod")), deploy("shop/cart", runs(old, 2))},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", TagNotMoved: uses IstioRevisionTag prod, which is being deleted`},
		},
		"a tag that cannot have its name is no tag": {
			[]part{tag(old, "Istio/other", "", unreconciled(v1.ReasonNameAlreadyExists, "taken")), labelledShop, deploy("shop/cart", runs(old, 2))},
			[]string{moveNamespace, `Pending restart Deployment shop/cart from "default-v1-24-0", OnOldRevision: selected by the namespace label`},
		},
		"the label chooses a revision of another Istio": {
			[]part{namespace("shop", rev(foreign24)), deploy("shop/cart", runs(old, 2))},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", ChoosesAnother: label istio.io/rev selects IstioRevision other-v1-24-0, which belongs to Istio other`},
		},
		"the label chooses a revision of nobody": {
			[]part{orphan("mine"), namespace("shop", rev("mine")), deploy("shop/cart", runs(old, 2))},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", ChoosesAnother: label istio.io/rev selects IstioRevision mine, which has no owner`},
		},
		"the label chooses a tag of another Istio": {
			[]part{tag("prod", "Istio/other", foreign24), namespace("shop", rev("prod")), deploy("shop/cart", runs(old, 2))},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", ChoosesAnother: label istio.io/rev selects IstioRevisionTag prod, which follows Istio other`},
		},
		"the label names nothing that exists": {
			[]part{namespace("shop", rev("canary")), deploy("shop/cart", runs(old, 2))},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", UnknownRevision: label istio.io/rev names canary, which is neither a revision nor a tag; correct the label`},
		},
		"istio-injection, and nothing is called default": {
			[]part{namespace("shop", "istio-injection=enabled"), deploy("shop/cart", runs(old, 2))},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", UnknownRevision: label istio-injection names default, which is neither a revision nor a tag; correct the label`},
		},
		"injection is off in the namespace": {
			[]part{labelledInjectionOff, deploy("shop/cart", runs(old, 2))},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", ` + injectionOff},
		},
		"injection is off in the namespace, whatever the label of the pods names": {
			[]part{labelledInjectionOff, deploy("shop/cart", podLabels(rev(old)), runs(old, 2))},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", ` + injectionOff},
		},
		"injection is off by a label of the pods": {
			[]part{labelledShop, deploy("shop/cart", podLabels("sidecar.istio.io/inject=false"), runs(old, 2))},
			[]string{moveNamespace, `Skipped stay Deployment shop/cart from "default-v1-24-0", ` + injectionOff},
		},
		"injection is off by an annotation of the pods": {
			[]part{labelledShop, deploy("shop/cart", podAnnotations("sidecar.istio.io/inject=false"), runs(old, 2))},
			[]string{moveNamespace, `Skipped stay Deployment shop/cart from "default-v1-24-0", ` + injectionOff},
		},
		"the label of the namespace is gone": {
			[]part{namespace("shop", ""), deploy("shop/cart", runs(old, 2))},
			[]string{`Skipped stay Deployment shop/cart from "default-v1-24-0", ` + injectionOff},
		},

		// What the API server does not let happen.
		"refused": {
			[]part{labelledShop, deploy("shop/cart", runs(old, 2)), refuses("shop/cart", "policy says no")},
			[]string{moveNamespace, `Failed restart Deployment shop/cart from "default-v1-24-0", Refused: policy says no`},
		},
		"the label of the namespace is refused": {
			[]part{labelledShop, deploy("shop/cart", runs(old, 2)), deploy("shop/own", podLabels(rev(old)), runs(old, 2)), refuses("shop", "policy says no")},
			[]string{
				`Failed relabel Namespace shop from "default-v1-24-0", Refused: policy says no`,
				`Failed restart Deployment shop/cart from "default-v1-24-0", NamespaceRefused: the label of namespace shop could not be changed: policy says no`,
				`Failed relabel Deployment shop/own from "default-v1-24-0", NamespaceRefused: the label of namespace shop could not be changed: policy says no`,
			},
		},

		// Other kinds keep an old revision alive.
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reported(Plan(observed(tc.parts...), epoch))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

const injectionOff = "InjectionOff: injection is disabled; its pods keep the sidecar of default-v1-24-0 until a restart"

var labelledInjectionOff = namespace("shop", "istio-injection=disabled,istio.io/rev="+old)

func orphan(name string) part {
	return func(o *Observed) {
		revision := makeRevision(name, "v1.24.0", "default")
		revision.OwnerReferences = nil
		o.Revisions = append(o.Revisions, revision)
	}
}

// TestDisruptive tells what goes in batches from what restarts nothing.
func TestDisruptive(t *testing.T) {
	plan := Plan(observed(
		namespace("shop", rev(old)), namespace("own", ""),
		deploy("shop/cart", runs(old, 2)),
		deploy("own/idle", podLabels(rev(old)), replicas(0), says("0 of 0 new, 0 ready")),
		deploy("own/pay", podLabels(rev(old)), runs(old, 2)),
	), epoch)
	got := map[string]bool{}
	for _, s := range plan.Steps {
		got[s.Object.Name] = s.Disruptive
	}
	want := map[string]bool{"shop": false, "idle": false, "pay": true, "cart": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("disruptive (-want +got):\n%s", diff)
	}
}

// TestMovedBySomebodyElse is about workloads that were counted when the migration began, and come to the target without us.
func TestMovedBySomebodyElse(t *testing.T) {
	shop := namespace("shop", rev(target))
	const done = `Done restart Deployment shop/cart from "", RunsOnTarget: restarted by another client on default-v1-26-0`
	cases := map[string]struct {
		parts []part
		want  []string
	}{
		"restarted since":                  {[]part{shop, migrating, deploy("shop/cart", arrived(30))}, []string{done}},
		"there before":                     {[]part{shop, migrating, deploy("shop/cart", arrived(-30))}, nil},
		"new since":                        {[]part{shop, migrating, deploy("shop/cart", arrived(30), created(20))}, nil},
		"no migration":                     {[]part{shop, deploy("shop/cart", arrived(30))}, nil},
		"in the middle of it":              {[]part{shop, migrating, deploy("shop/cart", runs(target, 2), says("1 of 2 new, 2 ready"))}, nil},
		"restarted before it ended":        {[]part{shop, migrated(v1.WorkloadMigrationStateFailed, 40), deploy("shop/cart", arrived(30))}, []string{done}},
		"restarted after it ended":         {[]part{shop, migrated(v1.WorkloadMigrationStateFailed, 40), deploy("shop/cart", arrived(50))}, nil},
		"moved by us in an earlier one":    {[]part{shop, migrating, deploy("shop/cart", arrived(30), moved(-90, 1, func(m *Mark) { m.Run = at(-100) }))}, nil},
		"chooses a revision of its own":    {[]part{namespace("shop", rev("canary")), migrating, deploy("shop/cart", arrived(30))}, nil},
		"restarted since, through a tag":   {[]part{tag("prod", "Istio/default", target), namespace("shop", rev("prod")), migrating, deploy("shop/cart", arrived(30))}, []string{done}},
		"restarted since, its label moved": {[]part{namespace("shop", ""), migrating, deploy("shop/cart", podLabels(rev(target)), arrived(30))}, []string{done}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reported(Plan(observed(tc.parts...), at(60)))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
