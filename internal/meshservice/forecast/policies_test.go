package forecast

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/meshservice/policy"
)

func applies(kind, name, why string) policy.Decision {
	return policy.Decision{Kind: kind, Policy: "shop/" + name, Applies: true, Why: why}
}

func not(d policy.Decision) policy.Decision {
	d.Applies = false
	return d
}

func inPart(d policy.Decision) policy.Decision {
	d.InPart = true
	return d
}

func ruled(clusters map[string][]policy.Decision) policyDecisions {
	all := policyDecisions{}
	for cluster, decisions := range clusters {
		all[cluster] = map[entry]policy.Decision{}
		for _, d := range decisions {
			all[cluster][entry{d.Kind, d.Policy, d.Entry}] = d
		}
	}
	return all
}

func TestComparePolicies(t *testing.T) {
	type decided = map[string][]policy.Decision
	timeout := applies("MeshTimeout", "t", "is for the tag")
	route := applies("MeshHTTPRoute", "r", "is for the tag")
	moves := []Change{{Kind: Listener, Action: Changes, Name: dialName, from: []string{tag}, to: []string{eastern}}}
	cases := map[string]struct {
		changes       []Change
		before, after decided
		want          []string
	}{
		"nothing": {nil, decided{tag: {timeout}}, decided{tag: {timeout}}, nil},
		"a call that leads elsewhere takes policies along, and routes not": {
			moves, decided{tag: {timeout, route}}, decided{tag: {timeout, route}, eastern: {timeout, not(applies("MeshHTTPRoute", "r", "stays with the tag"))}},
			[]string{"MeshHTTPRoute shop/r stops for kuma.io/service backend_shop_svc_80 called [" + dialName + "]: stays with the tag"},
		},
		"and meets others": {
			moves, decided{tag: {timeout}}, decided{eastern: {applies("MeshTimeout", "new", "is for a section")}},
			[]string{
				"MeshTimeout shop/t stops for kuma.io/service backend_shop_svc_80 called [" + dialName + "]: does not target MeshService shop/backend of zone east port 80",
				"MeshTimeout shop/new starts for MeshService shop/backend of zone east port 80 called [" + dialName + "]: is for a section",
			},
		},
		"only what concerns the own zone is left": {
			moves, decided{tag: {applies("MeshLoadBalancingStrategy", "l", "is for the tag")}},
			decided{eastern: {inPart(applies("MeshLoadBalancingStrategy", "l", "without crossZone"))}},
			[]string{"MeshLoadBalancingStrategy shop/l shrinks for MeshService shop/backend of zone east port 80 called [" + dialName + "]: without crossZone"},
		},
		"all of it concerns the own zone": {
			moves, decided{tag: {applies("MeshLoadBalancingStrategy", "l", "is for the tag")}},
			decided{eastern: {applies("MeshLoadBalancingStrategy", "l", "is for the tag, and so for the MeshService")}}, nil,
		},
		"and on the way back it is whole again": {
			[]Change{{Kind: Listener, Action: Changes, Name: dialName, from: []string{eastern}, to: []string{tag}}},
			decided{eastern: {inPart(applies("MeshLoadBalancingStrategy", "l", "without crossZone"))}},
			decided{tag: {applies("MeshLoadBalancingStrategy", "l", "is for the tag")}},
			[]string{"MeshLoadBalancingStrategy shop/l grows for kuma.io/service backend_shop_svc_80 called [" + dialName + "]: is for the tag"},
		},
		"a new destination with a policy of its own": {
			nil, decided{tag: {timeout}}, decided{tag: {timeout}, eastern: {timeout, applies("MeshRetry", "s", "is for a section")}},
			[]string{"MeshRetry shop/s starts for MeshService shop/backend of zone east port 80 called []: is for a section"},
		},
		"the last destination of a policy goes": {
			nil, decided{tag: {timeout}}, decided{},
			[]string{"MeshTimeout shop/t stops for kuma.io/service backend_shop_svc_80 called []: targets no destination that remains"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range comparePolicies(c.changes, ruled(c.before), ruled(c.after)) {
				got = append(got, fmt.Sprintf("%s %s %s for %s called %v: %s", p.Kind, p.Policy, p.Effect, p.Destination, p.Calls, p.Why))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
