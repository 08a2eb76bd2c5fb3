package release

import (
	"maps"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead/fairlead/internal/revision/helm/charts"
)

// makeChart is a chart with the given templates, by name.
func makeChart(digest string, templates map[string]string) *charts.Chart {
	made := &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "synthetic", Version: "1.2.3"}}
	for name, text := range templates {
		made.Templates = append(made.Templates, &common.File{Name: "templates/" + name, Data: []byte(text)})
	}
	return &charts.Chart{Chart: made, Digest: digest}
}

func TestFingerprint(t *testing.T) {
	templates := map[string]string{"a.yaml": "", "b.yaml": ""}
	make := func(change func(*Spec)) Spec {
		spec := Spec{
			Name: "istiod", Namespace: "istio-system", Chart: makeChart("sha256:1", templates),
			Owner:  &metav1.OwnerReference{APIVersion: "v1", Kind: "IstioRevision", Name: "default", UID: "1"},
			Values: map[string]any{"pilot": map[string]any{"cpu": int64(1), "env": map[string]any{"A": "b", "C": "d"}}},
		}
		if change != nil {
			change(&spec)
		}
		return spec
	}
	same := map[string]func(*Spec){
		"another process": nil,
		"a number that is read in another way": func(s *Spec) {
			s.Values = map[string]any{"pilot": map[string]any{"env": map[string]any{"C": "d", "A": "b"}, "cpu": float64(1)}}
		},
		"releases that it replaces":             func(s *Spec) { s.Replaces = map[string]types.UID{"before": "1"} },
		"whether to take over what others have": func(s *Spec) { s.TakeOwnership = true },
		"how the owner is held":                 func(s *Spec) { s.Owner.BlockOwnerDeletion = new(bool) },
		"the version, said twice":               func(s *Spec) { s.ChartVersion = "1.2.3" },
	}
	others := map[string]func(*Spec){
		"name":           func(s *Spec) { s.Name = "istiod-canary" },
		"namespace":      func(s *Spec) { s.Namespace = "elsewhere" },
		"chart":          func(s *Spec) { s.Chart = makeChart("sha256:2", templates) },
		"version":        func(s *Spec) { s.ChartVersion = "1.2.4" },
		"values":         func(s *Spec) { s.Values["pilot"].(map[string]any)["cpu"] = int64(2) },
		"no values":      func(s *Spec) { s.Values = nil },
		"another owner":  func(s *Spec) { s.Owner.UID = "2" },
		"no owner":       func(s *Spec) { s.Owner = nil },
		"some templates": func(s *Spec) { s.Only = func(name string) bool { return name == "templates/a.yaml" } },
		"other ones":     func(s *Spec) { s.Only = func(name string) bool { return name == "templates/b.yaml" } },
	}
	want := make(nil).Fingerprint()
	if errs := validation.IsValidLabelValue(want); len(errs) > 0 {
		t.Errorf("%s is no value of a label: %v", want, errs)
	}
	for name, change := range same {
		if got := make(change).Fingerprint(); got != want {
			t.Errorf("%s: the fingerprint is another", name)
		}
	}
	seen := map[string]string{want: "the original"}
	for name, change := range others {
		got := make(change).Fingerprint()
		if twin, ok := seen[got]; ok {
			t.Errorf("%s: the fingerprint is that of %s", name, twin)
		}
		seen[got] = name
	}
	none := make(func(s *Spec) { s.Values = nil })
	empty := make(func(s *Spec) { s.Values = map[string]any{} })
	if none.Fingerprint() != empty.Fingerprint() {
		t.Error("no values and empty values are told apart")
	}
}

func TestOwnerLabel(t *testing.T) {
	long := strings.Repeat("x", 70)
	tests := map[string]struct{ name, want string }{
		"fits":     {"default-v1-24-0", "IstioRevision.default-v1-24-0"},
		"dots":     {"a.b", "IstioRevision.a.b"},
		"too long": {long, "IstioRevision." + long[:40] + "-1b3e2932"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := OwnerLabel(&metav1.OwnerReference{Kind: "IstioRevision", Name: tc.name})
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if errs := validation.IsValidLabelValue(got); len(errs) > 0 {
				t.Errorf("%s is no value of a label: %v", got, errs)
			}
		})
	}
}

// Whoever reads the records finds the namespaces again, which cluster-scoped objects no longer name once they are taken over.
func TestReplacedBy(t *testing.T) {
	spec := Spec{Name: "base", Namespace: "now", Chart: makeChart("sha256:1", nil), Replaces: map[string]types.UID{"before": "1", "long-before": "2"}}
	record := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: spec.labels()}}
	if got := ReplacedBy(record); !maps.Equal(got, spec.Replaces) {
		t.Errorf("the record replaces those in %q, want %q", got, spec.Replaces)
	}
	for label, value := range spec.labels() {
		if errs := append(validation.IsQualifiedName(label), validation.IsValidLabelValue(value)...); len(errs) > 0 {
			t.Errorf("label %s=%s: %v", label, value, errs)
		}
	}
}
