package policy

import (
	"fmt"
	"testing"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/test/harness/growth"
)

// BenchmarkGrowth resolves 50 reachable destinations of each of 1,000 consumers, under 50 policies that name each service
// in one way or another.
func BenchmarkGrowth(b *testing.B) {
	const consumers, reachable, few, many = 1000, 50, 250, 1000
	policies := map[int][]Policy{few: policiesIn(b, manyPolicies(few)), many: policiesIn(b, manyPolicies(many))}
	spent := growth.Linear(b, few, many, func(services int) func() {
		destinations := destinationsOf(services)
		return func() { resolveAll(policies[services], destinations, consumers, reachable) }
	})
	b.ReportMetric(float64(spent.Nanoseconds())/(consumers*reachable), "ns/destination")
}

func destinationsOf(services int) []model.Destination {
	destinations := make([]model.Destination, 0, 2*services)
	for i := range services {
		name := fmt.Sprintf("service-%d", i)
		destinations = append(destinations, tag(model.KubernetesTag(name, "shop", 80)), service(name, "shop", "east", 80, "80"))
	}
	return destinations
}

func resolveAll(policies []Policy, destinations []model.Destination, consumers, reachable int) {
	set := Compile(policies, onKubernetes)
	for i := range consumers {
		p := cart()
		p.ID.Name = fmt.Sprintf("consumer-%d", i)
		p.Inbounds[0] = map[string]string{"kuma.io/service": model.KubernetesTag(fmt.Sprintf("service-%d", i), "shop", 80)}
		class := set.Class(p)
		for j := range reachable {
			set.Resolve(class, destinations[(i*7+j)%len(destinations)])
		}
	}
}

// BenchmarkRules resolves the rules of a MeshHTTPRoute, none of which is compared with all others.
func BenchmarkRules(b *testing.B) {
	growth.Linear(b, 1000, 4000, func(entries int) func() {
		var all []kumav1alpha1.MeshHTTPRouteTo
		for i := range entries {
			all = append(all, manyRules(0, 1, fmt.Sprintf("/%d", i)))
		}
		p := httpRoute(all...)
		return func() { resolveRoute(p) }
	})
}

// manyPolicies are 50, which share out the services among themselves, each of them named in the old and the new way.
func manyPolicies(services int) string {
	const count = 50
	refs := make([][]string, count)
	for i := range services {
		at := i % (count - 2)
		name := fmt.Sprintf("service-%d", i)
		refs[at] = append(refs[at],
			"{kind: MeshService, name: "+model.KubernetesTag(name, "shop", 80)+"}",
			"{kind: MeshService, labels: {kuma.io/display-name: "+name+", kuma.io/namespace: shop}, sectionName: 80}")
	}
	refs[count-2] = []string{"{kind: Mesh}"}
	refs[count-1] = []string{"{kind: MeshService, labels: {team: service-1s}}"}
	var all []string
	for i := range count {
		text := timeout(fmt.Sprintf("policy-%d", i), "1s", refs[i]...)
		if i%10 == 0 {
			text += fmt.Sprintf("\n  targetRef: {kind: MeshService, name: %s}", model.KubernetesTag(fmt.Sprintf("service-%d", i), "shop", 80))
		}
		all = append(all, text)
	}
	return together(all...)
}
