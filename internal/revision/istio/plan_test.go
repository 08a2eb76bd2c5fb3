package istio

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// inShort tells a plan on one line per step: state, what, from, to, why.
func inShort(plan passage.Plan) []string {
	var lines []string
	if plan.Hold != nil {
		lines = append(lines, "hold "+string(plan.Hold.Code))
	}
	for _, s := range plan.Steps {
		lines = append(lines, fmt.Sprintf("%s %s %s %q->%q %s", s.State, s.Action, s.Object, s.From, s.To, s.Reason.Code))
	}
	return lines
}

func TestPlan(t *testing.T) {
	pilot := func(replicas int64) v1.Values {
		return v1.Values{"pilot": map[string]any{"replicaCount": replicas}}
	}
	cases := map[string]struct {
		in   Observed
		want []string
	}{
		"in place, nothing there": {
			observed(makeIstio("default")),
			[]string{`Pending create IstioRevision default ""->"v1.24.0" RevisionMissing`},
		},
		"revision based, nothing there": {
			observed(makeIstio("default").revisionBased()),
			[]string{`Pending create IstioRevision default-v1-24-0 ""->"v1.24.0" RevisionMissing`},
		},
		"a release candidate has dots after its dash too": {
			observed(makeIstio("default").revisionBased().version("v1.25.0-rc.1")),
			[]string{`Pending create IstioRevision default-v1-25-0-rc-1 ""->"v1.25.0-rc.1" RevisionMissing`},
		},
		"name and version that do not fit together": {
			observed(makeIstio("abcdefghijklmnopqrstuvwxyz0123456789").revisionBased().version("v1.25.0-rc.1")),
			[]string{`Failed create IstioRevision abcdefghijklmnopqrstuvwxyz0123456789-v1-25-0-rc-1 ""->"v1.25.0-rc.1" RevisionNameTooLong`},
		},
		"name and version that just fit": {
			observed(makeIstio("abcdefghijklmnopqrstuvwxyz0123456789").revisionBased().version("v1.255.0")),
			[]string{`Pending create IstioRevision abcdefghijklmnopqrstuvwxyz0123456789-v1-255-0 ""->"v1.255.0" RevisionMissing`},
		},
		"revision based, the next version comes beside the old one": {
			observed(makeIstio("default").revisionBased().version("v1.26.0"),
				makeRevision("default-v1-24-0", "v1.24.0").of("default").ready()).used("default-v1-24-0"),
			[]string{
				`Pending create IstioRevision default-v1-26-0 ""->"v1.26.0" RevisionMissing`,
				`Later prune IstioRevision default-v1-24-0 "v1.24.0"->"" InUse`,
			},
		},
		"in place, the next version replaces the old one": {
			observed(makeIstio("default").version("v1.26.0"), makeRevision("default", "v1.24.0").of("default").ready()),
			[]string{`Pending update IstioRevision default "v1.24.0"->"v1.26.0" RevisionDiffers`},
		},
		"other values": {
			observed(makeIstio("default").values(pilot(2)), makeRevision("default", "v1.24.0").of("default").values(pilot(1))),
			[]string{`Pending update IstioRevision default "v1.24.0"->"v1.24.0" RevisionDiffers`},
		},
		"values that went": {
			observed(makeIstio("default"), makeRevision("default", "v1.24.0").of("default").values(pilot(1))),
			[]string{`Pending update IstioRevision default "v1.24.0"->"v1.24.0" RevisionDiffers`},
		},
		"no values and empty values are the same": {
			observed(makeIstio("default").values(v1.Values{}), makeRevision("default", "v1.24.0").of("default").ready()),
			[]string{`Done run IstioRevision default ""->"v1.24.0" IstiodReady`},
		},
		"serves, and its chart has changed under its version": {
			observed(makeIstio("default").revisionBased().version("v1.26.0"),
				makeRevision("default-v1-26-0", "v1.26.0").of("default").ready().
					condition(v1.ConditionReconciled, metav1.ConditionFalse, v1.ReasonChartChanged, "another digest"),
				makeRevision("default-v1-24-0", "v1.24.0").of("default").ready()).used("default-v1-24-0"),
			[]string{
				`Failed run IstioRevision default-v1-26-0 ""->"v1.26.0" ChartChanged`,
				`Pending retire IstioRevision default-v1-24-0 ""->"" Inactive`,
				`Later prune IstioRevision default-v1-24-0 "v1.24.0"->"" InUse`,
			},
		},
		"values that somebody else added are theirs": {
			observed(makeIstio("default"), makeRevision("default", "v1.24.0").of("default").extended(pilot(3)).ready()),
			[]string{`Done run IstioRevision default ""->"v1.24.0" IstiodReady`},
		},
		"written, not installed": {
			observed(makeIstio("default"), makeRevision("default", "v1.24.0").of("default")),
			[]string{`Running run IstioRevision default ""->"v1.24.0" IstiodNotReady`},
		},
		"ready, but for what it was before": {
			observed(makeIstio("default"), makeRevision("default", "v1.24.0").of("default").generation(2).ready()),
			[]string{`Running run IstioRevision default ""->"v1.24.0" IstiodNotReady`},
		},
		"not ready for a reason of its own": {
			observed(makeIstio("default"), makeRevision("default", "v1.24.0").of("default").
				condition(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonReadinessCheckFailed, "timeout")),
			[]string{`Running run IstioRevision default ""->"v1.24.0" ReadinessCheckFailed`},
		},
		"no version: the newest": {
			observed(makeIstio("default").revisionBased().version("")).charts("v1.26.0", "v1.24.1", "v1.24.0"),
			[]string{`Pending create IstioRevision default-v1-26-0 ""->"v1.26.0" RevisionMissing`},
		},
		"the newest patch": {
			observed(makeIstio("default").revisionBased().version("v1.24-latest")).charts("v1.26.0", "v1.24.1", "v1.24.0"),
			[]string{`Pending create IstioRevision default-v1-24-1 ""->"v1.24.1" RevisionMissing`},
		},
		"an alias that has moved makes a new revision": {
			observed(makeIstio("default").revisionBased().version("v1.24-latest").active("default-v1-24-0"),
				makeRevision("default-v1-24-0", "v1.24.0").of("default").ready().unused()).charts("v1.24.1", "v1.24.0"),
			[]string{
				`Pending create IstioRevision default-v1-24-1 ""->"v1.24.1" RevisionMissing`,
				`Running prune IstioRevision default-v1-24-0 "v1.24.0"->"" Inactive`,
			},
		},
		"an alias that nothing stands for": {
			observed(makeIstio("default").version("v1.27-latest")).charts("v1.26.0"),
			[]string{`Failed resolve Istio default "v1.27-latest"->"" VersionNotFound`},
		},
		"a version that there are no charts of": {
			observed(makeIstio("default")).charts("v1.26.0"),
			[]string{`Failed resolve Istio default "v1.24.0"->"" VersionNotFound`},
		},
		"charts that are gone do not disturb what runs": {
			observed(makeIstio("default").active("default"), makeRevision("default", "v1.24.0").of("default").ready()).charts("v1.26.0"),
			[]string{`Done run IstioRevision default ""->"v1.24.0" IstiodReady`},
		},
		"charts that are gone are no order to go back": {
			observed(makeIstio("default").version("").active("default"),
				makeRevision("default", "v1.26.0").of("default").ready()).charts("v1.24.0"),
			[]string{`Done run IstioRevision default ""->"v1.26.0" IstiodReady`},
		},
		"no answer from the source of charts: an exact version needs none": {
			observed(makeIstio("default")).noCharts(),
			[]string{`Pending create IstioRevision default ""->"v1.24.0" RevisionMissing`},
		},
		"no answer from the source of charts: an alias keeps what it stood for": {
			observed(makeIstio("default").version("v1.24-latest").active("default"),
				makeRevision("default", "v1.24.0").of("default").ready()).noCharts(),
			[]string{`Done run IstioRevision default ""->"v1.24.0" IstiodReady`},
		},
		"no answer from the source of charts: an alias that stood for nothing": {
			observed(makeIstio("default").version("v1.24-latest")).noCharts(),
			[]string{`Failed resolve Istio default "v1.24-latest"->"" ChartsUnavailable`},
		},
		"only the operator can read charts, and it has reported that it cannot": {
			observed(makeIstio("default").reconciled("False", v1.ReasonChartsUnavailable, 1)).unreadableCharts(),
			[]string{`Failed resolve Istio default "v1.24.0"->"" ChartsUnavailable`},
		},
		"only the operator can read charts, and it has reported that there are none of the version": {
			observed(makeIstio("default").reconciled("False", v1.ReasonVersionNotFound, 1)).unreadableCharts(),
			[]string{`Failed resolve Istio default "v1.24.0"->"" VersionNotFound`},
		},
		"only the operator can read charts, and its report is about another error": {
			observed(makeIstio("default").reconciled("False", v1.ReasonReconcileError, 1)).unreadableCharts(),
			[]string{`Pending create IstioRevision default ""->"v1.24.0" RevisionMissing`},
		},
		"only the operator can read charts, and its report is about another spec": {
			observed(makeIstio("default").reconciled("False", v1.ReasonVersionNotFound, 0)).unreadableCharts(),
			[]string{`Pending create IstioRevision default ""->"v1.24.0" RevisionMissing`},
		},
		"the operator ignores what it has reported": {
			observed(makeIstio("default").reconciled("False", v1.ReasonVersionNotFound, 1)),
			[]string{`Pending create IstioRevision default ""->"v1.24.0" RevisionMissing`},
		},
		"an exact version that happens to end in latest": {
			observed(makeIstio("default").version("v1.24.0-latest")),
			[]string{`Pending create IstioRevision default ""->"v1.24.0-latest" RevisionMissing`},
		},
		"the name belongs to another Istio": {
			observed(makeIstio("a").revisionBased(), makeRevision("a-v1-24-0", "v1.24.0").of("a-v1-24-0")),
			[]string{`Failed create IstioRevision a-v1-24-0 "v1.24.0"->"v1.24.0" NameAlreadyExists`},
		},
		"the name belongs to an Istio of the same name that is gone": {
			observed(makeIstio("default"), func() revisionBuilder {
				r := makeRevision("default", "v1.24.0").of("default")
				r.OwnerReferences[0].UID = "of-an-earlier-life"
				return r
			}()),
			[]string{`Running create IstioRevision default "v1.24.0"->"v1.24.0" NameInDeletion`},
		},
		"a revision made by hand that differs is left alone": {
			observed(makeIstio("default"), makeRevision("default", "v1.23.0")),
			[]string{`Failed create IstioRevision default "v1.23.0"->"v1.24.0" NameAlreadyExists`},
		},
		"an orphan that is as the Istio asks is adopted": {
			observed(makeIstio("default"), makeRevision("default", "v1.24.0")),
			[]string{`Pending adopt IstioRevision default "v1.24.0"->"v1.24.0" RevisionOrphaned`},
		},
		"a namesake is still being deleted": {
			observed(makeIstio("default"), makeRevision("default", "v1.24.0").of("default").deleting()),
			[]string{`Running create IstioRevision default "v1.24.0"->"v1.24.0" NameInDeletion`},
		},
		"paused": {
			observed(makeIstio("default").paused("true")),
			[]string{"hold Paused", `Pending create IstioRevision default ""->"v1.24.0" RevisionMissing`},
		},
		"only the value true pauses": {
			observed(makeIstio("default").paused("false")),
			[]string{`Pending create IstioRevision default ""->"v1.24.0" RevisionMissing`},
		},
		"being deleted": {
			observed(makeIstio("default").deleting()),
			[]string{"hold BeingDeleted"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, inShort(Plan(c.in, epoch))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDesiredRevision(t *testing.T) {
	given := v1.Values{"pilot": map[string]any{"env": map[string]any{"A": "b"}}}
	istio := makeIstio("default").values(given).profile("ambient")
	got := desiredRevision(istio.Istio, "v1.24.0")
	want := v1.IstioRevisionSpec{
		Version:   "v1.24.0",
		Namespace: "istio-system",
		Values:    v1.Values{"pilot": map[string]any{"env": map[string]any{"A": "b"}}, "profile": "ambient"},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Error(diff)
	}
	if _, leaked := given["profile"]; leaked {
		t.Error("the Istio's own values were changed")
	}
	if !metav1.IsControlledBy(got, istio) {
		t.Error("the revision does not belong to the Istio")
	}
}

func TestPlanMessagesNameTheRemedy(t *testing.T) {
	plan := Plan(observed(makeIstio("default").version("v1.27-latest")).charts("v1.26.0", "v1.24.0"), epoch)
	want := "spec.version v1.27-latest asks for the newest stable patch of v1.27, and there is none; " +
		"set spec.version to one that exists, of which the nearest are v1.26.0, v1.24.0"
	if diff := cmp.Diff(want, plan.Steps[0].Reason.Message); diff != "" {
		t.Error(diff)
	}
	plan = Plan(observed(makeIstio("default"), makeRevision("default", "v1.23.0")), epoch)
	want = "IstioRevision default exists, differs from what Istio default asks for in spec.version, and was not made by it; " +
		"delete it, make it agree, or give the Istio another name"
	if diff := cmp.Diff(want, plan.Steps[0].Reason.Message); diff != "" {
		t.Error(diff)
	}
}
