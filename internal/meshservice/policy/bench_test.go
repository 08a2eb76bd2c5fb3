package policy

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// BenchmarkGrowth resolves 50 reachable destinations of each of 1,000 consumers, under 50 policies that name each service
// in one way or another, and fails when four times as many services cost more than four times as much.
func BenchmarkGrowth(b *testing.B) {
	const consumers, reachable, few, many = 1000, 50, 250, 1000
	// Noise of the machine is given as much as the growth is.
	const most = 2 * many / few
	spent := map[int]time.Duration{}
	policies := map[int][]Policy{few: policiesIn(b, manyPolicies(few)), many: policiesIn(b, manyPolicies(many))}
	for b.Loop() {
		for services := range policies {
			spent[services] += resolveAll(b, policies[services], services, consumers, reachable)
		}
	}
	each := spent[many] / time.Duration(b.N*consumers*reachable)
	ratio := float64(spent[many]) / float64(spent[few])
	b.ReportMetric(float64(each.Nanoseconds()), "ns/destination")
	b.ReportMetric(ratio, "x-time/x4-services")
	if ratio > most {
		b.Fatalf("%d services cost %.1f times as much as %d", many, ratio, few)
	}
}

func resolveAll(b *testing.B, policies []Policy, services, consumers, reachable int) time.Duration {
	destinations := make([]model.Destination, 0, 2*services)
	for i := range services {
		name := fmt.Sprintf("service-%d", i)
		destinations = append(destinations, tag(model.KubernetesTag(name, "shop", 80)), service(name, "shop", "east", 80, "80"))
	}
	started := processorTime(b)
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
	return processorTime(b) - started
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

// processorTime is what this process has used; the clock on the wall also counts what others do.
func processorTime(b testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
