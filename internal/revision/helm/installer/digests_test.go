package installer

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

func revisionWith(name, accepted string, charts ...v1.ChartDigest) *v1.IstioRevision {
	revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.IstioRevisionStatus{Charts: charts}}
	if accepted != "" {
		revision.Annotations = map[string]string{v1.AnnotationAcceptChartDigest: accepted}
	}
	return revision
}

func istiodChart(digest string) v1.ChartDigest {
	return v1.ChartDigest{Name: "istiod", Version: "v1.24.0", Digest: digest}
}

func TestChartRecords(t *testing.T) {
	base := v1.ChartDigest{Name: "base", Version: "v1.24.0", Digest: "first"}
	newer := v1.ChartDigest{Name: "istiod", Version: "v1.26.0", Digest: "first"}
	cases := map[string]struct {
		revision *v1.IstioRevision
		others   []*v1.IstioRevision
		want     string
	}{
		"nothing is recorded":                 {revisionWith("a", ""), nil, ""},
		"another chart, another version":      {revisionWith("a", "", base, newer), nil, ""},
		"the recorded one":                    {revisionWith("a", "", base, istiodChart("now")), nil, ""},
		"not the recorded one":                {revisionWith("a", "", istiodChart("first")), nil, "first"},
		"recorded by another revision":        {revisionWith("a", ""), []*v1.IstioRevision{revisionWith("b", "", istiodChart("first"))}, "first"},
		"also recorded by another revision":   {revisionWith("a", ""), []*v1.IstioRevision{revisionWith("b", "", istiodChart("now"))}, ""},
		"one of others has it":                {revisionWith("a", ""), []*v1.IstioRevision{revisionWith("b", "", istiodChart("first")), revisionWith("c", "", istiodChart("now"))}, ""},
		"its own record counts more":          {revisionWith("a", "", istiodChart("now")), []*v1.IstioRevision{revisionWith("b", "", istiodChart("first"))}, ""},
		"its own record, and another has it":  {revisionWith("a", "", istiodChart("first")), []*v1.IstioRevision{revisionWith("b", "", istiodChart("now"))}, "first"},
		"accepted":                            {revisionWith("a", "now", istiodChart("first")), nil, ""},
		"accepted among others":               {revisionWith("a", "x, now", istiodChart("first")), nil, ""},
		"another is accepted":                 {revisionWith("a", "no", istiodChart("first")), nil, "first"},
		"everything is not accepted":          {revisionWith("a", "*", istiodChart("first")), nil, "first"},
		"another revision has it accepted":    {revisionWith("a", "", istiodChart("first")), []*v1.IstioRevision{revisionWith("b", "now")}, "first"},
		"of this chart there is a record too": {revisionWith("a", "", base, newer, istiodChart("first")), nil, "first"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := ChartRecords{c.revision, c.others}.Check(istiodChart("now"), "repository http://charts")
			if c.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			want := "chart istiod v1.24.0 of repository http://charts has digest now, but " + c.want +
				" was installed under this version, so nothing is written. Restore the chart in its source; or, if you trust the new one, " +
				"accept it with `kubectl annotate --overwrite istiorevision a fairlead.dev/accept-chart-digest=now`"
			if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRecordChart(t *testing.T) {
	base := v1.ChartDigest{Name: "base", Version: "v1.24.0", Digest: "first"}
	var many []v1.ChartDigest
	for i := range v1.MaxChartDigests {
		many = append(many, v1.ChartDigest{Name: "istiod", Version: fmt.Sprintf("v1.23.%d", i), Digest: "x"})
	}
	cases := map[string]struct {
		before []v1.ChartDigest
		chart  v1.ChartDigest
		want   []v1.ChartDigest
	}{
		"the first":       {nil, istiodChart("a"), []v1.ChartDigest{istiodChart("a")}},
		"another":         {[]v1.ChartDigest{base}, istiodChart("a"), []v1.ChartDigest{base, istiodChart("a")}},
		"the same again":  {[]v1.ChartDigest{istiodChart("a"), base}, istiodChart("a"), []v1.ChartDigest{istiodChart("a"), base}},
		"an accepted one": {[]v1.ChartDigest{istiodChart("a"), base}, istiodChart("b"), []v1.ChartDigest{base, istiodChart("b")}},
		"none is loaded":  {[]v1.ChartDigest{base}, istiodChart(""), []v1.ChartDigest{base}},
		"too many":        {many, istiodChart("a"), append(many[1:len(many):len(many)], istiodChart("a"))},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, RecordChart(c.before, c.chart)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Of a release whose chart has changed nothing is written, and it is looked at again: the source may be repaired.
func TestStepsForAChangedChart(t *testing.T) {
	changed := &ChangedChartError{Chart: istiodChart("now"), Recorded: "first", Revision: "a"}
	deployed := release.State{Exists: true, Status: "deployed", ChartVersion: "v1.24.0"}
	cases := map[string]struct {
		release  Release
		upToDate bool
		want     string
	}{
		"installed":             {Release{Chart: istiodChart(""), Err: changed, State: deployed}, true, "upgrade"},
		"not installed":         {Release{Chart: istiodChart(""), Err: changed}, false, "install"},
		"of another version":    {Release{Chart: istiodChart(""), Err: changed, State: release.State{Exists: true, Status: "deployed", ChartVersion: "v1.23.0"}}, false, "upgrade"},
		"an attempt has failed": {Release{Chart: istiodChart(""), Err: changed, State: release.State{Exists: true, Status: "failed", ChartVersion: "v1.24.0"}}, false, "upgrade"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, reported := range []bool{false, true} {
				if got := c.release.IsUpToDate(reported); got != c.upToDate {
					t.Errorf("up to date: %t", got)
				}
				steps := Steps(c.release, reported)
				if len(steps) != 1 {
					t.Fatalf("got %v", steps)
				}
				got := fmt.Sprint(steps[0].State, " ", steps[0].Action, " ", steps[0].To, " ", steps[0].Reason.Code)
				if diff := cmp.Diff("Failed "+c.want+" v1.24.0 ChartChanged", got); diff != "" {
					t.Error(diff)
				}
				if result, err := Result(passage.Plan{Steps: steps}, nil, time.Second); err != nil || result.RequeueAfter != time.Second {
					t.Errorf("the result is %v, %v", result, err)
				}
			}
		})
	}
}

// A refused chart is soon loaded again, but not with every event.
func TestForgottenChartsAreLoadedAgain(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	source := &shelf{versions: []string{"v1.24.0"}}
	c := NewCharts(source)
	c.now = func() time.Time { return now }
	for _, step := range []struct {
		after  time.Duration
		loaded int
	}{{0, 1}, {time.Second, 1}, {c.RetryInterval() - 2*time.Second, 1}, {time.Second, 2}, {time.Second, 2}} {
		now = now.Add(step.after)
		if _, err := c.Load(t.Context(), "istiod", "v1.24.0"); err != nil {
			t.Fatal(err)
		}
		c.Forget("istiod", "v1.24.0")
		if source.asked != step.loaded {
			t.Errorf("at %s loaded %d times, want %d", now.Format(time.TimeOnly), source.asked, step.loaded)
		}
	}
	if source.forgotten == 0 {
		t.Error("the source was not told")
	}
}
