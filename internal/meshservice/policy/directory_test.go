package policy

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

func TestDangling(t *testing.T) {
	destinations := []model.Destination{
		tag("demo-app_kuma-demo_svc_5000"), tag("backend"),
		demoApp(5000, "5000"), demoApp(80, "http"), service("demo-app", "kuma-demo", "west", 5000, "5000"),
		service("only", "kuma-demo", "east", 80, "80"), service("db", "", "east", 5432, "5432"), multiZone("everywhere", 80, "80"),
	}
	route := func(ref, backends string) string {
		return "kind: MeshHTTPRoute\nmetadata: {name: a}\nspec: {to: [{targetRef: " + ref + ", rules: [{default: {backendRefs: [" + backends + "]}}]}]}"
	}
	mirror := func(ref string) string {
		return "kind: MeshHTTPRoute\nmetadata: {name: a}\nspec: {to: [{targetRef: {kind: Mesh}, rules: [{default: {filters: [{type: RequestMirror, requestMirror: {backendRef: " + ref + "}}]}}]}]}"
	}
	for name, c := range map[string]struct{ policies, want string }{
		"the mesh":           {timeout("a", "1s", "{kind: Mesh}"), ""},
		"a tag":              {timeout("a", "1s", legacy), ""},
		"a MeshService":      {timeout("a", "1s", newStyle), ""},
		"one for a tag":      {timeout("a", "1s", "{kind: MeshService, name: only_kuma-demo_svc_80}"), ""},
		"of universal":       {timeout("a", "1s", "{kind: MeshService, name: db}"), ""},
		"its section":        {timeout("a", "1s", "{kind: MeshService, name: db, sectionName: 5432}"), ""},
		"another name":       {timeout("a", "1s", "{kind: MeshMultiZoneService, name: everywhere}"), ""},
		"no labels":          {timeout("a", "1s", "{kind: MeshService, labels: {}}"), ""},
		"of somebody else":   {timeout("a", "1s", "{kind: MeshExternalService, name: x}"), ""},
		"an external one":    {route("{kind: Mesh}", "{kind: MeshExternalService, name: x}"), ""},
		"no such tag":        {timeout("a", "1s", "{kind: MeshService, name: x_y_svc_1}"), "spec.to[0].targetRef.name: there is no kuma.io/service x_y_svc_1; correct the name, or remove the entry"},
		"no such port":       {timeout("a", "1s", "{kind: Mesh}", "{kind: MeshService, name: only_kuma-demo_svc_81}"), "spec.to[1].targetRef.name: there is no kuma.io/service only_kuma-demo_svc_81; the MeshService only has port 80"},
		"a route's tag":      {route("{kind: MeshService, name: only_kuma-demo_svc_80}", ""), "spec.to[0].targetRef.name: there is no kuma.io/service only_kuma-demo_svc_80; routes for a kuma.io/service do not apply to its MeshService: route the MeshService only by its labels and sectionName: \"80\""},
		"without namespace":  {timeout("a", "1s", "{kind: MeshService, name: only}"), "spec.to[0].targetRef.name: there is no kuma.io/service only; if the MeshService only is meant, write namespace: kuma-demo"},
		"another namespace":  {timeout("a", "1s", "{kind: MeshService, name: only, sectionName: 80}"), "spec.to[0].targetRef.namespace: there is no MeshService only in namespace kuma-system; write namespace: kuma-demo"},
		"no such name":       {timeout("a", "1s", "{kind: MeshService, name: x, namespace: z}"), "spec.to[0].targetRef.name: there is no MeshService x in namespace z; correct the name, or remove the entry"},
		"no such labels":     {timeout("a", "1s", "{kind: MeshService, labels: {team: x}}"), "spec.to[0].targetRef.labels: there is no MeshService with these labels; correct the labels, or remove the entry"},
		"labels of a kind":   {timeout("a", "1s", "{kind: MeshMultiZoneService, labels: {kuma.io/display-name: demo-app}}"), "spec.to[0].targetRef.labels: there is no MeshMultiZoneService with these labels; correct the labels, or remove the entry"},
		"no such section":    {timeout("a", "1s", "{kind: MeshService, name: demo-app, namespace: kuma-demo, sectionName: grpc}"), "spec.to[0].targetRef.sectionName: the MeshService demo-app in namespace kuma-demo has no section grpc; choose among 5000 (port 5000), http (port 80)"},
		"a number with name": {timeout("a", "1s", "{kind: MeshService, labels: {kuma.io/display-name: demo-app}, sectionName: 80}"), "spec.to[0].targetRef.sectionName: port 80 is named http, and sectionName takes the name; write sectionName: http"},
		"a subset":           {timeout("a", "1s", "{kind: MeshServiceSubset, name: backend}"), "spec.to[0].targetRef: targets a MeshServiceSubset, which Fairlead does not support; name a MeshService or a MeshMultiZoneService"},
		"backends":           {route("{kind: Mesh}", "{kind: MeshService, name: backend}, {kind: MeshService, name: only, namespace: kuma-demo, port: 80}, {kind: MeshService, name: db, port: 5432}"), ""},
		"no such backend":    {route("{kind: Mesh}", "{kind: MeshService, name: backend}, {kind: MeshService, name: x}"), "spec.to[0].rules[0].default.backendRefs[1].name: there is no kuma.io/service x; correct the name, or remove the entry"},
		"a mirror":           {mirror("{kind: MeshService, name: only, namespace: kuma-demo, port: 80}"), ""},
		"no such mirror":     {mirror("{kind: MeshService, name: x}"), "spec.to[0].rules[0].default.filters[0].requestMirror.backendRef.name: there is no kuma.io/service x; correct the name, or remove the entry"},
		"a backend's port":   {route("{kind: Mesh}", "{kind: MeshService, name: only, namespace: kuma-demo, port: 81}"), "spec.to[0].rules[0].default.backendRefs[0].port: the MeshService only in namespace kuma-demo has no port 81; choose among 80 (port 80)"},
		"a backend by tag, which stands for nothing": {route("{kind: Mesh}", "{kind: MeshService, name: only_kuma-demo_svc_80}"), "spec.to[0].rules[0].default.backendRefs[0].name: there is no kuma.io/service only_kuma-demo_svc_80; routes for a kuma.io/service do not apply to its MeshService: route the MeshService only by its labels and sectionName: \"80\""},
	} {
		t.Run(name, func(t *testing.T) {
			policies := policiesIn(t, c.policies)
			want := []string(nil)
			if c.want != "" {
				want = []string{model.KindOf(policies[0]) + " kuma-system/a: " + c.want}
			}
			var got []string
			for _, f := range Dangling(policies, destinations) {
				got = append(got, fmt.Sprintf("%s %s: %s: %s; %s", f.Kind, f.Policy, f.Field, f.Problem, f.Remedy))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("sorted", func(t *testing.T) {
		nothing := "{kind: MeshService, name: x}"
		var got []string
		for _, f := range Dangling(policiesIn(t, together(timeout("b", "1s", nothing), timeout("a", "1s", nothing, nothing), said("MeshRetry", "c", "{}", nothing))), destinations) {
			got = append(got, f.Policy+" "+f.Field)
		}
		want := []string{"kuma-system/c spec.to[0].targetRef.name", "kuma-system/a spec.to[0].targetRef.name", "kuma-system/a spec.to[1].targetRef.name", "kuma-system/b spec.to[0].targetRef.name"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBackends(t *testing.T) {
	directory := NewDirectory([]model.Destination{tag("a_b_svc_1"), service("a", "b", "east", 1, "1"), service("a", "b", "west", 1, "1"), service("a", "b", "east", 2, "two")})
	for name, c := range map[string]struct {
		ref  string
		want []string
	}{
		"a tag":     {"{kind: MeshService, name: a_b_svc_1}", []string{"a_b_svc_1"}},
		"a number":  {"{kind: MeshService, name: a, namespace: b, port: 2}", []string{"a_b_east_default_msvc_2"}},
		"a section": {"{kind: MeshService, name: a, namespace: b, sectionName: two}", []string{"a_b_east_default_msvc_2"}},
		"its own":   {"{kind: MeshService, name: a, port: 2}", []string{"a_b_east_default_msvc_2"}},
		"labels":    {"{kind: MeshService, labels: {kuma.io/display-name: a}, port: 1}", []string{"a_b_east_default_msvc_1", "a_b_west_default_msvc_1"}},
		"nothing":   {"{kind: MeshService, name: a_b_svc_1, port: 1}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := policiesIn(t, "kind: MeshTCPRoute\nmetadata: {name: a, namespace: b}\nspec: {to: [{targetRef: {kind: Mesh}, rules: [{default: {backendRefs: ["+c.ref+"]}}]}]}")[0]
			var got []string
			_, backends := model.RouteBackends(p.Entries()[0].Default)
			for _, d := range directory.Backends(backends[0].BackendRef, "b") {
				got = append(got, d.Key.Cluster())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
