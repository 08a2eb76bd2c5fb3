package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRulesOfRoutes(t *testing.T) {
	route := func(name, ref, rest string) string {
		return "kind: MeshHTTPRoute\nmetadata: {name: " + name + ", namespace: shop}\nspec: {to: [{targetRef: " + ref + ", " + rest + "}]}"
	}
	to := func(backend string) string {
		return "default: {backendRefs: [{kind: MeshService, name: " + backend + "}]}"
	}
	for name, c := range map[string]struct {
		policies string
		want     []string
	}{
		"none": {route("a", "{kind: Mesh}", "rules: []"), nil},
		"the closest path first": {
			route("a", "{kind: Mesh}", "rules: [{matches: [{path: {type: PathPrefix, value: /}}], "+to("root")+
				"}, {matches: [{path: {type: PathPrefix, value: /api}}, {path: {type: Exact, value: /}}], "+to("api")+"}, {"+to("rest")+"}]"),
			[]string{"Exact / -> api", "PathPrefix /api -> api", "PathPrefix / -> root", "-> rest"},
		},
		"then method, headers and parameters": {
			route("a", "{kind: Mesh}", "rules: [{matches: [{queryParams: [{name: q, value: \"1\"}]}], "+to("q")+"}, {matches: [{headers: [{name: h, value: \"1\"}]}], "+to("h")+
				"}, {matches: [{method: GET}], "+to("get")+"}]"),
			[]string{"GET -> get", "h -> h", "q -> q"},
		},
		"of the same requests, the closer entry": {
			together(route("a", "{kind: Mesh}", "rules: [{matches: [{path: {type: Exact, value: /a}}], "+to("mesh")+"}, {matches: [{path: {type: Exact, value: /bb}}], "+to("mesh")+"}]"),
				route("b", "{kind: MeshService, name: any}", "rules: [{matches: [{path: {type: Exact, value: /a}}], "+to("service")+"}]")),
			[]string{"Exact /bb -> mesh", "Exact /a -> service"},
		},
		"hosts first, and apart from each other": {
			together(route("a", "{kind: Mesh}", "hostnames: [x], rules: [{"+to("x")+"}]"), route("b", "{kind: Mesh}", "rules: [{"+to("every")+"}]")),
			[]string{"x -> x", "-> every"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := Compile(policiesIn(t, c.policies), onKubernetes)
			var got []string
			if effective := set.Resolve(set.Class(cart()), tag("any")); effective.HTTPRoute != nil {
				for _, rule := range effective.HTTPRoute.Rules {
					got = append(got, reported(t, rule))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func reported(t *testing.T, rule HTTPRule) string {
	t.Helper()
	if rule.Namespace != "shop" {
		text, _ := json.Marshal(rule)
		t.Errorf("the namespace of its backends is not known: %s", text)
	}
	words := append([]string{}, rule.Hostnames...)
	if p := rule.Match.Path; p != nil {
		words = append(words, p.Type, p.Value)
	}
	if rule.Match.Method != "" {
		words = append(words, rule.Match.Method)
	}
	for _, h := range rule.Match.Headers {
		words = append(words, h.Name)
	}
	for _, q := range rule.Match.QueryParams {
		words = append(words, q.Name)
	}
	return strings.Join(append(words, "->", rule.BackendRefs[0].Name), " ")
}
