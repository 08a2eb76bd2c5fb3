package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// manyRules is an entry of a MeshHTTPRoute for the mesh.
func manyRules(hostnames, rules int, prefix string) kumav1alpha1.MeshHTTPRouteTo {
	to := kumav1alpha1.MeshHTTPRouteTo{TargetRef: kumav1alpha1.ToTargetRef{Kind: "Mesh"}}
	for i := range hostnames {
		to.Hostnames = append(to.Hostnames, fmt.Sprintf("%s-%d.example.org", strings.Trim(prefix, "/"), i))
	}
	for i := range rules {
		to.Rules = append(to.Rules, kumav1alpha1.HTTPRule{Matches: []kumav1alpha1.HTTPMatch{{
			Path: &kumav1alpha1.PathMatch{Type: "Exact", Value: fmt.Sprintf("%s/%d", prefix, i)},
		}}})
	}
	return to
}

func httpRoute(to ...kumav1alpha1.MeshHTTPRouteTo) Policy {
	p := &kumav1alpha1.MeshHTTPRoute{Spec: kumav1alpha1.MeshHTTPRouteSpec{To: to}}
	p.Namespace, p.Name = "shop", "a"
	return p
}

func resolveRoute(p Policy) *Effective {
	set := Compile([]Policy{p}, onKubernetes)
	return set.Resolve(set.Class(cart()), tag("any"))
}

// An entry beyond a limit is ignored and reported; others of the policy stay in force.
func TestLimitsOfAnEntry(t *testing.T) {
	severalMatches := kumav1alpha1.MeshHTTPRouteTo{TargetRef: kumav1alpha1.ToTargetRef{Kind: "Mesh"}}
	severalMatches.Rules = []kumav1alpha1.HTTPRule{{Matches: make([]kumav1alpha1.HTTPMatch, maxMatches)}, {}}
	for name, c := range map[string]struct {
		to   kumav1alpha1.MeshHTTPRouteTo
		want string
	}{
		"small":               {manyRules(2, 3, "/large"), ""},
		"as many as allowed":  {manyRules(maxHostnames, 20, "/large"), ""},
		"as many matches":     {manyRules(2, maxMatches, "/large"), ""},
		"too many hostnames":  {manyRules(maxHostnames+1, 1, "/large"), "spec.to[0].hostnames: 65 hostnames are more than 64, and the entry is ignored; use a wildcard such as *.example.org, or split the entry"},
		"too many rules":      {manyRules(1, maxMatches+1, "/large"), "spec.to[0].rules: 257 matches are more than 256, and the entry is ignored; match by prefix, or split the entry"},
		"matches of one rule": {severalMatches, "spec.to[0].rules: 257 matches are more than 256, and the entry is ignored; match by prefix, or split the entry"},
	} {
		t.Run(name, func(t *testing.T) {
			p := httpRoute(c.to, manyRules(0, 1, "/small"))
			got := ""
			for _, f := range Dangling([]Policy{p}, []model.Destination{tag("any")}) {
				got += fmt.Sprintf("%s: %s; %s", f.Field, f.Problem, f.Remedy)
				if !f.ExceedsLimit || f.Kind != "MeshHTTPRoute" || f.Policy != "shop/a" {
					t.Errorf("the finding is %+v", f)
				}
			}
			if got != c.want {
				t.Errorf("the problem is %q, want %q", got, c.want)
			}
			rules := resolveRoute(p).HTTPRoute.Rules
			if want := 1; c.want != "" && len(rules) != want {
				t.Errorf("%d rules are in force, want %d", len(rules), want)
			} else if c.want == "" && len(rules) != len(c.to.Rules)+1 {
				t.Errorf("%d rules are in force, want %d", len(rules), len(c.to.Rules)+1)
			}
		})
	}
}

// Many entries together have no more routes than a proxy takes: those with less precedence are left out, and reported.
func TestLimitOfARoute(t *testing.T) {
	var entries []kumav1alpha1.MeshHTTPRouteTo
	for i := range 40 {
		entries = append(entries, manyRules(maxHostnames, maxMatches, fmt.Sprintf("/part-%d", i)))
	}
	small := manyRules(0, 1, "/last")
	small.TargetRef = kumav1alpha1.ToTargetRef{Kind: "MeshService", Name: "any"} // takes precedence
	e := resolveRoute(httpRoute(append(entries, small)...))
	size, closest := 0, false
	for _, rule := range e.HTTPRoute.Rules {
		text, err := json.Marshal(rule.Match)
		if err != nil {
			t.Fatal(err)
		}
		size += max(1, len(rule.Hostnames)) * len(text)
		closest = closest || rule.Match.Path.Value == "/last/0"
	}
	if size > maxRouteSize || !closest {
		t.Errorf("the routes have %d bytes, with the closest rule among them: %t", size, closest)
	}
	if len(e.LeftOut) == 0 || e.LeftOut[0].Policy != "shop/a" || e.LeftOut[0].Kind != "MeshHTTPRoute" || !strings.HasPrefix(e.LeftOut[0].Field, "spec.to[") {
		t.Errorf("what is left out is reported as %+v", e.LeftOut)
	}
	if got := resolveRoute(httpRoute(manyRules(30, 64, "/usual"), manyRules(0, maxMatches, "/all"))).LeftOut; len(got) > 0 {
		t.Errorf("a usual route is left out: %+v", got)
	}
}

// A policy has so many affinity tags in all of its entries and no more.
func TestLimitOfAffinityTags(t *testing.T) {
	entry := func(prefix string, count int) kumav1alpha1.MeshLoadBalancingStrategyTo {
		to := kumav1alpha1.MeshLoadBalancingStrategyTo{TargetRef: kumav1alpha1.ToTargetRef{Kind: "Mesh"}}
		zone := &kumav1alpha1.LocalZone{}
		for i := range count {
			zone.AffinityTags = append(zone.AffinityTags, kumav1alpha1.AffinityTag{Key: fmt.Sprint(prefix, i)})
		}
		to.Default.LocalityAwareness = &kumav1alpha1.LocalityAwareness{LocalZone: zone}
		return to
	}
	for name, c := range map[string]struct {
		to      []kumav1alpha1.MeshLoadBalancingStrategyTo
		ignored string
		keys    int
	}{
		"as many as allowed":      {[]kumav1alpha1.MeshLoadBalancingStrategyTo{entry("a", maxAffinityTags)}, "", maxAffinityTags},
		"the same in each entry":  {[]kumav1alpha1.MeshLoadBalancingStrategyTo{entry("a", 10), entry("a", 10), entry("a", 10)}, "", 10},
		"too many":                {[]kumav1alpha1.MeshLoadBalancingStrategyTo{entry("a", maxAffinityTags+1), entry("b", 2)}, "0", 2},
		"too many in all entries": {[]kumav1alpha1.MeshLoadBalancingStrategyTo{entry("a", 10), entry("b", 10)}, "1", 10},
	} {
		t.Run(name, func(t *testing.T) {
			p := &kumav1alpha1.MeshLoadBalancingStrategy{Spec: kumav1alpha1.MeshLoadBalancingStrategySpec{To: c.to}}
			p.Namespace, p.Name = "shop", "a"
			got, want := "", ""
			for _, f := range Dangling([]Policy{p}, []model.Destination{tag("any")}) {
				got += f.Kind + " " + f.Policy + " " + f.Field + ": " + f.Problem + "; " + f.Remedy
			}
			if c.ignored != "" {
				want = "MeshLoadBalancingStrategy shop/a spec.to[" + c.ignored + "].default.localityAwareness.localZone.affinityTags: " +
					"the policy has more than 16 affinity tags with those of the entry, and the entry is ignored; remove affinity tags"
			}
			if got != want {
				t.Errorf("the problem is %q, want %q", got, want)
			}
			if keys := Compile([]Policy{p}, onKubernetes).Class(cart()).AffinityKeys(); len(keys) != c.keys {
				t.Errorf("the affinity tags are %v, want %d", keys, c.keys)
			}
		})
	}
}
