package controlplane

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

func inShort(plan passage.Plan) []string {
	var lines []string
	if plan.Hold != nil {
		lines = append(lines, "hold "+string(plan.Hold.Code))
	}
	for _, s := range plan.Steps {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", s.State, s.Action, s.Object, s.Reason.Code))
	}
	return lines
}

func olderTag(name string) *v1.IstioRevisionTag {
	return &v1.IstioRevisionTag{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(epoch.AddDate(0, 0, -1)),
	}}
}

func object(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetKind(kind)
	u.SetNamespace("istio-system")
	u.SetName(name)
	return u
}

// refused is a release whose chart is not the one that it was installed from.
func refused(r installer.Release, chart string) installer.Release {
	of := v1.ChartDigest{Name: chart, Version: r.State.ChartVersion}
	changed := of
	changed.Digest = "sha256:b"
	return installer.Release{Name: r.Name, Namespace: r.Namespace, State: r.State, Chart: of, Err: &installer.ChangedChartError{
		Chart: changed, Source: "directory /charts", Recorded: "sha256:a", Revision: "a",
	}}
}

var unanswered = &installer.UnavailableError{Err: errors.New("timeout")}

func TestPlan(t *testing.T) {
	cases := map[string]struct {
		in   Observed
		want []string
	}{
		"nothing there": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) {
				o.Base, o.Istiod, o.Deployments = missing(o.Base.Wanted), missing(o.Istiod.Wanted), nil
			}),
			[]string{
				"Pending install Release istio-system/fairlead-base NotInstalled",
				"Running install Release istio-system/a-istiod NotInstalled",
			},
		},
		"the base is there": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) { o.Istiod = missing(o.Istiod.Wanted) }),
			[]string{"Pending install Release istio-system/a-istiod NotInstalled"},
		},
		"another revision looks after the base": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) {
				o.ManagesBase, o.Base, o.Istiod = false, missing(o.Base.Wanted), missing(o.Istiod.Wanted)
			}),
			[]string{"Running install Release istio-system/a-istiod NotInstalled"},
		},
		"another revision looks after the base, which is too old": {
			healthy(makeRevision("a", "v1.26.0")).with(func(o *Observed) {
				o.ManagesBase, o.Base, o.Istiod = false, installed(wanted("istio-system", BaseRelease, "v1.24.0")), missing(o.Istiod.Wanted)
			}),
			[]string{"Running install Release istio-system/a-istiod NotInstalled"},
		},
		"another revision looks after the base, and is not done with it": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) {
				o.ManagesBase, o.Istiod, o.Base.State.Status = false, missing(o.Istiod.Wanted), "pending-upgrade"
			}),
			[]string{"Running install Release istio-system/a-istiod NotInstalled"},
		},
		"another revision looks after a newer base": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) {
				o.ManagesBase, o.Base, o.Istiod = false, installed(wanted("istio-system", BaseRelease, "v1.26.0")), missing(o.Istiod.Wanted)
			}),
			[]string{"Pending install Release istio-system/a-istiod NotInstalled"},
		},
		"serves": {
			healthy(makeRevision("a", "v1.24.0")),
			[]string{"Done run Release istio-system/a-istiod IstiodReady"},
		},
		"installed, and its Deployment is not there": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) {
				o.Istiod.Deployments, o.Deployments = []client.ObjectKey{{Namespace: "istio-system", Name: "istiod"}}, nil
			}),
			[]string{"Running run Release istio-system/a-istiod IstiodNotReady"},
		},
		"an upgrade waits for the CRDs it needs, and what runs goes on": {
			healthy(makeRevision("a", "v1.26.0")).with(func(o *Observed) {
				o.ManagesBase, o.Base.State.ChartVersion, o.Istiod.State.Fingerprint = false, "v1.24.0", "before"
			}),
			[]string{"Running install Release istio-system/a-istiod NotInstalled"},
		},
		"installed, not serving yet": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) { o.Deployments = []appsv1.Deployment{deployment(1, 1, 0, 1)} }),
			[]string{"Running run Release istio-system/a-istiod IstiodNotReady"},
		},
		"another version, or other values": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) { o.Istiod.State.Fingerprint = "another" }),
			[]string{"Pending upgrade Release istio-system/a-istiod ReleaseDiffers"},
		},
		"a newer base comes before what needs it, and holds up nothing that runs": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) { o.Base.State.Fingerprint = "another" }),
			[]string{
				"Pending upgrade Release istio-system/fairlead-base ReleaseDiffers",
				"Done run Release istio-system/a-istiod IstiodReady",
			},
		},
		"cut off in the middle": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) { o.Istiod.State.Status = "pending-install" }),
			[]string{"Pending upgrade Release istio-system/a-istiod ReleaseBroken"},
		},
		"edited and deleted": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) {
				o.Istiod.Drift = []installer.Drift{{Desired: object("Service", "istiod")}, {Desired: object("ConfigMap", "istio"), Field: "data.mesh"}}
			}),
			[]string{
				"Pending restore Service istio-system/istiod ObjectMissing",
				"Pending restore ConfigMap istio-system/istio ObjectEdited",
			},
		},
		"the namespace is missing": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) { o.Namespace = false }),
			[]string{"Running install Release istio-system/a-istiod NamespaceNotFound"},
		},
		"the name belongs to an older tag": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) { o.Tag = olderTag("a") }),
			[]string{"Failed install Release istio-system/a-istiod NameAlreadyExists"},
		},
		"a younger tag of the same name is not our concern": {
			healthy(makeRevision("a", "v1.24.0").age(3)).with(func(o *Observed) {
				o.Tag = olderTag("a")
				o.Tag.CreationTimestamp = metav1.NewTime(epoch)
			}),
			[]string{"Done run Release istio-system/a-istiod IstiodReady"},
		},
		"no charts of that version": {
			healthy(makeRevision("a", "v1.99.0")).with(func(o *Observed) {
				o.Istiod = installer.Release{Name: "a-istiod", Namespace: "istio-system", Err: &charts.NotFoundError{Asked: "v1.99.0"}}
			}),
			[]string{"Failed install Release istio-system/a-istiod VersionNotFound"},
		},
		"the source of charts does not answer": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) {
				o.Istiod = installer.Release{Name: "a-istiod", Namespace: "istio-system", Err: unanswered}
			}),
			[]string{"Running install Release istio-system/a-istiod ChartsUnavailable"},
		},
		"the source of charts does not answer, and all was installed before": {
			healthy(makeRevision("a", "v1.24.0").reconciled()).with(func(o *Observed) { o.Istiod.Err, o.Base.Err = unanswered, unanswered }),
			[]string{"Done run Release istio-system/a-istiod IstiodReady"},
		},
		"the charts are gone, and all was installed before": {
			healthy(makeRevision("a", "v1.24.0").reconciled()).with(func(o *Observed) { o.Istiod.Err = &charts.NotFoundError{} }),
			[]string{"Done run Release istio-system/a-istiod IstiodReady"},
		},
		"runs, and nobody can look after the base": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) { o.ManagesBase, o.Base = false, installer.Release{} }),
			[]string{"Done run Release istio-system/a-istiod IstiodReady"},
		},
		"the source of charts does not answer, and the spec has changed": {
			healthy(makeRevision("a", "v1.24.0").reconciled().generation(2)).with(func(o *Observed) { o.Istiod.Err = unanswered }),
			[]string{"Running upgrade Release istio-system/a-istiod ChartsUnavailable"},
		},
		"a chart has changed under its version": {
			healthy(makeRevision("a", "v1.24.0").reconciled()).with(func(o *Observed) {
				o.Istiod = refused(o.Istiod, "istiod")
			}),
			[]string{"Failed upgrade Release istio-system/a-istiod ChartChanged"},
		},
		"the base chart has changed under its version": {
			healthy(makeRevision("a", "v1.24.0").reconciled()).with(func(o *Observed) {
				o.Base = refused(o.Base, "base")
			}),
			[]string{
				"Failed upgrade Release istio-system/fairlead-base ChartChanged",
				"Done run Release istio-system/a-istiod IstiodReady",
			},
		},
		"values that the templates do not take": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) { o.Istiod.Err = &release.RenderError{} }),
			[]string{"Failed upgrade Release istio-system/a-istiod TemplateError"},
		},
		"paused": {
			healthy(makeRevision("a", "v1.24.0").paused()).with(func(o *Observed) { o.Istiod = missing(o.Istiod.Wanted) }),
			[]string{"hold Paused", "Pending install Release istio-system/a-istiod NotInstalled"},
		},
		"the default revision validates": {
			healthy(makeRevision("default", "v1.24.0")).with(func(o *Observed) {
				o.IsDefault, o.Validator = true, missing(wanted("istio-system", ValidatorRelease, "v1.24.0"))
			}),
			[]string{
				"Pending install Release istio-system/fairlead-default-validator NotInstalled",
				"Done run Release istio-system/default-istiod IstiodReady",
			},
		},
		"the base moves to where revisions are": {
			healthy(makeRevision("default", "v1.24.0")).with(func(o *Observed) {
				o.ObsoleteReleases = []release.State{{Name: BaseRelease, Namespace: "before"}}
				o.Base = missing(o.Base.Wanted)
			}),
			[]string{
				"Pending install Release istio-system/fairlead-base NotInstalled",
				"Done run Release istio-system/default-istiod IstiodReady",
				"Running uninstall Release before/fairlead-base ReleaseDiffers",
			},
		},
		"the base has moved": {
			healthy(makeRevision("default", "v1.24.0")).with(func(o *Observed) {
				o.ObsoleteReleases = []release.State{{Name: BaseRelease, Namespace: "before"}}
			}),
			[]string{
				"Done run Release istio-system/default-istiod IstiodReady",
				"Pending uninstall Release before/fairlead-base ReleaseDiffers",
			},
		},
		"another revision becomes the default": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) {
				o.ObsoleteReleases = []release.State{{Name: ValidatorRelease, Namespace: "before"}}
				o.IsDefault, o.Validator = true, missing(wanted("istio-system", ValidatorRelease, "v1.24.0"))
			}),
			[]string{
				"Pending install Release istio-system/fairlead-default-validator NotInstalled",
				"Done run Release istio-system/a-istiod IstiodReady",
				"Running uninstall Release before/fairlead-default-validator ReleaseDiffers",
			},
		},
		"nobody is the default any more": {
			healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) {
				o.ObsoleteReleases = []release.State{{Name: ValidatorRelease, Namespace: "before"}}
			}),
			[]string{
				"Done run Release istio-system/a-istiod IstiodReady",
				"Pending uninstall Release before/fairlead-default-validator ReleaseDiffers",
			},
		},
		"being deleted": {
			healthy(makeRevision("a", "v1.24.0").deleting()),
			[]string{"Pending uninstall Release istio-system/a-istiod BeingDeleted"},
		},
		"being deleted, even if paused": {
			healthy(makeRevision("a", "v1.24.0").paused().deleting()),
			[]string{"Pending uninstall Release istio-system/a-istiod BeingDeleted"},
		},
		"being deleted, the last one": {
			healthy(makeRevision("a", "v1.24.0").deleting()).with(func(o *Observed) {
				o.ObsoleteReleases = []release.State{{Name: BaseRelease, Namespace: "istio-system"}}
			}),
			[]string{
				"Pending uninstall Release istio-system/a-istiod BeingDeleted",
				"Pending uninstall Release istio-system/fairlead-base BeingDeleted",
			},
		},
		"gone": {
			healthy(makeRevision("a", "v1.24.0").deleting()).with(func(o *Observed) { o.Istiod = missing(o.Istiod.Wanted) }),
			nil,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, inShort(Plan(c.in))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// surging is a Deployment whose new pod is not ready while an old one still serves.
func surging(replicas, pods int32) appsv1.Deployment {
	d := deployment(replicas, 1, 1, 1)
	d.Status.Replicas = pods
	return d
}

func TestServing(t *testing.T) {
	cases := map[string]struct {
		deployment appsv1.Deployment
		want       string
	}{
		"serves":                     {deployment(2, 2, 2, 1), ""},
		"changed a moment ago":       {deployment(2, 2, 2, 0), "has changed, and the Deployment controller has not observed the change yet"},
		"old pods only":              {deployment(2, 0, 2, 1), "has 0 of 2 pods of its latest version"},
		"new pods are not ready":     {deployment(2, 2, 1, 1), "has 1 of 2 pods ready"},
		"an old pod is all there is": {surging(1, 2), "still has 1 old pods"},
		"scaled to zero":             {deployment(0, 0, 0, 1), "is scaled to zero"},
		"more than wanted, briefly":  {deployment(1, 2, 2, 1), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, why := deploymentServes(c.deployment); why != c.want {
				t.Errorf("got %q, want %q", why, c.want)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	cases := map[string]struct {
		in                       Observed
		failure                  error
		state                    v1.State
		reconciled, ready, inUse string
	}{
		"healthy, used by nobody": {
			in:         healthy(makeRevision("a", "v1.24.0")),
			state:      v1.StateHealthy,
			reconciled: "True Reconciled: the charts of v1.24.0 are installed",
			ready:      "True IstiodReady: istiod serves",
			inUse:      "False NotReferencedByAnything: nothing refers to this name",
		},
		"used": {
			in: healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) {
				o.Usage = usage.Usage{Namespaces: 1, Names: []string{"Namespace shop"}}
			}),
			state:      v1.StateHealthy,
			reconciled: "True Reconciled: the charts of v1.24.0 are installed",
			ready:      "True IstiodReady: istiod serves",
			inUse:      "True ReferencedByWorkloads: 1 namespace: Namespace shop",
		},
		"the namespace is missing": {
			in: healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) {
				o.Namespace, o.Istiod = false, missing(o.Istiod.Wanted)
			}),
			state:      "NamespaceNotFound",
			reconciled: "False NamespaceNotFound: namespace istio-system does not exist; create it, and the installation goes on",
			ready:      "False IstiodNotReady: istiod is not installed; the condition Reconciled says why",
			inUse:      "False NotReferencedByAnything: nothing refers to this name",
		},
		"a source of charts that does not answer makes nothing unready": {
			in:         healthy(makeRevision("a", "v1.24.0").reconciled()).with(func(o *Observed) { o.Istiod.Err = unanswered }),
			state:      v1.StateHealthy,
			reconciled: "True Reconciled: the charts of v1.24.0 are installed",
			ready:      "True IstiodReady: istiod serves",
			inUse:      "False NotReferencedByAnything: nothing refers to this name",
		},
		"a chart that has changed under its version makes nothing unready": {
			in:    healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) { o.Istiod = refused(o.Istiod, "istiod") }),
			state: v1.State(v1.ReasonChartChanged),
			reconciled: "False ChartChanged: chart istiod v1.24.0 of directory /charts has digest sha256:b, but sha256:a was installed under this version, " +
				"so nothing is written. Restore the chart in its source; or, if you trust the new one, " +
				"accept it with `kubectl annotate --overwrite istiorevision a fairlead.dev/accept-chart-digest=sha256:b`",
			ready: "True IstiodReady: istiod serves",
			inUse: "False NotReferencedByAnything: nothing refers to this name",
		},
		"what runs is not what is asked for": {
			in: healthy(makeRevision("a", "v1.24.0")).with(func(o *Observed) {
				o.Istiod.State.Fingerprint = "another"
			}),
			failure:    errors.New("connection refused from port 34567"),
			state:      "ReconcileError",
			reconciled: "False ReconcileError: installing failed (no answer from the API server) and will be tried again; details are in the operator's log",
			ready:      "False IstiodNotReady: istiod is not as the spec asks; the condition Reconciled says why",
			inUse:      "False NotReferencedByAnything: nothing refers to this name",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := statusOf(c.in, Plan(c.in), c.failure, epoch)
			var conditions []string
			for _, condition := range got.Conditions {
				conditions = append(conditions, fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message))
			}
			if diff := cmp.Diff([]string{c.reconciled, c.ready, c.inUse}, conditions); diff != "" {
				t.Error(diff)
			}
			if got.State != c.state {
				t.Errorf("state %s, want %s", got.State, c.state)
			}
		})
	}
}
