package controlplane

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

func TestDecideShared(t *testing.T) {
	type want struct{ BaseManager, Version, Default string }
	a := makeRevision("a", "v1.24.0").age(3)
	b := makeRevision("b", "v1.26.0").age(2)
	tagged := func(revision string) *v1.IstioRevisionTag {
		tag := &v1.IstioRevisionTag{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		tag.Status.IstioRevision = revision
		return tag
	}
	cases := map[string]struct {
		candidates []RevisionCandidate
		tag        *v1.IstioRevisionTag
		base       []release.State
		want       want
	}{
		"nobody": {},
		"one": {
			candidates: candidates(a),
			want:       want{"a", "v1.24.0", ""},
		},
		"the oldest manages the base, the newest version counts": {
			candidates: candidates(b, a),
			want:       want{"a", "v1.26.0", ""},
		},
		"CRDs never step back": {
			candidates: candidates(a),
			base:       []release.State{{Namespace: "istio-system", ChartVersion: "v1.26.0"}},
			want:       want{"a", "v1.26.0", ""},
		},
		"ten is more than nine": {
			candidates: candidates(makeRevision("a", "v1.9.0"), makeRevision("b", "v1.10.0")),
			want:       want{"a", "v1.10.0", ""},
		},
		"what is installed stays where it is": {
			candidates: candidates(a, makeRevision("c", "v1.24.0").in("mesh")),
			base:       []release.State{{Namespace: "mesh", ChartVersion: "v1.24.0"}},
			want:       want{"c", "v1.24.0", ""},
		},
		"the revision called default validates": {
			candidates: candidates(a, makeRevision("default", "v1.24.0").in("mesh")),
			want:       want{"a", "v1.24.0", "default"},
		},
		"the revision tagged default validates": {
			candidates: candidates(a, b),
			tag:        tagged("b"),
			want:       want{"a", "v1.26.0", "b"},
		},
		"a tag that points nowhere": {
			candidates: candidates(a),
			tag:        tagged(""),
			want:       want{"a", "v1.24.0", ""},
		},
		"one that is going does not count": {
			candidates: candidates(a.deleting(), b),
			want:       want{"b", "v1.26.0", ""},
		},
		"one that cannot be installed does not count": {
			candidates: append(candidates(b), RevisionCandidate{IstioRevision: makeRevision("default", "v1.31.0").in("missing").IstioRevision}),
			want:       want{"b", "v1.26.0", "default"},
		},
		"the default one cannot be installed for a moment, and stays the default one": {
			candidates: append(candidates(b), RevisionCandidate{IstioRevision: makeRevision("default", "v1.24.0").in("mesh").IstioRevision}),
			base:       []release.State{{Namespace: "mesh", ChartVersion: "v1.26.0"}},
			want:       want{"b", "v1.26.0", "default"},
		},
		"only one, and it cannot be installed": {
			candidates: []RevisionCandidate{{IstioRevision: a.IstioRevision}},
			base:       []release.State{{Namespace: "istio-system", ChartVersion: "v1.26.0"}},
			want:       want{"", "v1.26.0", ""},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			decided := decideShared(c.candidates, c.tag, c.base)
			got := want{Version: decided.Version}
			if decided.BaseManager != nil {
				got.BaseManager = decided.BaseManager.Name
			}
			if decided.Default != nil {
				got.Default = decided.Default.Name
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestObsoleteReleases(t *testing.T) {
	here, there := release.State{Namespace: "istio-system"}, release.State{Namespace: "before"}
	a, elsewhere := makeRevision("a", "v1.24.0").IstioRevision, makeRevision("b", "v1.24.0").IstioRevision
	elsewhere.Spec.Namespace = "before"
	cases := map[string]struct {
		managesBase, isDefault bool
		deleting               bool
		decided                shared
		bases, validators      []release.State
		named                  []string
		want                   int
	}{
		"all is where it belongs":   {managesBase: true, isDefault: true, decided: shared{Needed: true, BaseManager: a, Namespace: "istio-system", Default: a}, bases: []release.State{here}, validators: []release.State{here}},
		"the base has moved":        {managesBase: true, decided: shared{Needed: true, BaseManager: a, Namespace: "istio-system"}, bases: []release.State{here, there}, want: 1},
		"the validator has moved":   {isDefault: true, decided: shared{Needed: true, BaseManager: a, Namespace: "istio-system", Default: a}, validators: []release.State{there}, want: 1},
		"the validator is obsolete": {managesBase: true, decided: shared{Needed: true, BaseManager: a, Namespace: "istio-system"}, validators: []release.State{here}, want: 1},
		"the validator is obsolete, and another revision manages the base": {decided: shared{Needed: true, BaseManager: a, Namespace: "istio-system"}, validators: []release.State{here}},
		"what another one looks after is not touched":                      {decided: shared{Needed: true, BaseManager: a, Namespace: "istio-system", Default: a}, bases: []release.State{there}, validators: []release.State{there}},
		"no revision can manage them, but they are needed":                 {decided: shared{Needed: true}, bases: []release.State{here}, validators: []release.State{here}},
		"where it is stays where it is, whoever manages the base":          {managesBase: true, decided: shared{Needed: true, BaseManager: a, Namespace: "before"}, bases: []release.State{there}},
		"one to go takes the validator of its namespace along":             {deleting: true, decided: shared{Needed: true, BaseManager: a, Namespace: "before"}, bases: []release.State{here}, validators: []release.State{here, there}, want: 1},
		"also when the default is elsewhere by now":                        {deleting: true, decided: shared{Needed: true, BaseManager: a, Namespace: "before", Default: elsewhere}, bases: []release.State{here}, validators: []release.State{here, there}, want: 1},
		"the last of a namespace takes along what no other can install":    {deleting: true, decided: shared{Needed: true, Namespace: "before"}, bases: []release.State{here, there}, want: 1},
		"not if CRDs say where it is":                                      {deleting: true, decided: shared{Needed: true, Namespace: "before"}, bases: []release.State{here}, named: []string{"istio-system"}},
		"not as long as there is another one":                              {deleting: true, decided: shared{Needed: true, Namespace: "istio-system"}, bases: []release.State{here}},
		"the last to go takes all along":                                   {bases: []release.State{here}, validators: []release.State{here}, want: 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			revision := makeRevision("a", "v1.24.0")
			if c.deleting {
				revision = revision.deleting()
			}
			o := &Observed{Revision: revision.IstioRevision, ManagesBase: c.managesBase, IsDefault: c.isDefault}
			if got := obsoleteReleases(o, c.decided, c.bases, c.validators, sets.New(c.named...)); len(got) != c.want {
				t.Errorf("got %v, want %d", got, c.want)
			}
		})
	}
}

func TestNameHolder(t *testing.T) {
	at := func(second int) metav1.Time { return metav1.NewTime(epoch.Add(time.Duration(second) * time.Second)) }
	cases := map[string]struct {
		revision, tag     int
		installed, points bool
		heldByTag         bool
	}{
		"the revision is older":                         {revision: 1, tag: 2, points: true},
		"the tag is older":                              {revision: 2, tag: 1, installed: true, heldByTag: true},
		"same second, nothing done yet":                 {revision: 1, tag: 1},
		"same second, the tag was first":                {revision: 1, tag: 1, points: true, heldByTag: true},
		"same second, the revision was first":           {revision: 1, tag: 1, installed: true},
		"same second, both have been installed already": {revision: 1, tag: 1, installed: true, points: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(c.revision)}}
			tag := &v1.IstioRevisionTag{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(c.tag)}}
			if c.installed {
				revision.Finalizers = []string{v1.FinalizerUninstall}
			}
			if c.points {
				tag.Status.IstioRevision = "x"
			}
			if got := NameHolder(revision, tag); got != c.heldByTag {
				t.Errorf("held by the tag: %t", got)
			}
		})
	}
}

func TestValues(t *testing.T) {
	cases := map[string]struct {
		revision revisionBuilder
		want     map[string]any
	}{
		"nothing set": {
			makeRevision("a", "v1.24.0"),
			map[string]any{"revision": "a", "global": map[string]any{"istioNamespace": "istio-system"}},
		},
		"the default revision has no name for the charts": {
			makeRevision("default", "v1.24.0").in("mesh"),
			map[string]any{"revision": "", "global": map[string]any{"istioNamespace": "mesh"}},
		},
		"the user's values stay": {
			makeRevision("a", "v1.24.0").values(v1.Values{"global": map[string]any{"hub": "h"}, "pilot": map[string]any{"cni": true}}),
			map[string]any{
				"revision": "a", "pilot": map[string]any{"cni": true},
				"global": map[string]any{"hub": "h", "istioNamespace": "istio-system"},
			},
		},
		"a profile is the charts' own business": {
			makeRevision("a", "v1.24.0").values(v1.Values{"profile": "ambient"}),
			map[string]any{"revision": "a", "profile": "ambient", "global": map[string]any{"istioNamespace": "istio-system"}},
		},
		"the default profile is none": {
			makeRevision("a", "v1.24.0").values(v1.Values{"profile": "default"}),
			map[string]any{"revision": "a", "global": map[string]any{"istioNamespace": "istio-system"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			given := c.revision.Spec.Values.DeepCopy()
			if diff := cmp.Diff(c.want, Values(c.revision.IstioRevision)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(given, c.revision.Spec.Values); diff != "" {
				t.Errorf("the revision's own values were changed:\n%s", diff)
			}
		})
	}
}

func TestBaseValues(t *testing.T) {
	manager := makeRevision("a", "v1.24.0").in("mesh").values(v1.Values{
		"profile": "nonsense", "compatibilityVersion": "0.1", "platform": "none", "pilot": map[string]any{"cni": true},
		"base":   map[string]any{"excludedCRDs": []any{"x"}},
		"global": map[string]any{"imagePullSecrets": []any{"s"}, "profile": "nonsense", "platform": "none"},
	})
	given := manager.Spec.Values.DeepCopy()
	want := map[string]any{
		"defaultRevision": "",
		"base":            map[string]any{"excludedCRDs": []any{"x"}},
		"global":          map[string]any{"imagePullSecrets": []any{"s"}, "istioNamespace": "mesh"},
	}
	if diff := cmp.Diff(want, baseValues(manager.IstioRevision, "mesh")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(given, manager.Spec.Values); diff != "" {
		t.Errorf("the revision's own values were changed:\n%s", diff)
	}
}
