package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Limits of an entry of a MeshHTTPRoute, and of all entries of a MeshLoadBalancingStrategy.
const (
	maxHostnames    = 64
	maxMatches      = 256
	maxAffinityTags = 16
)

// tooLarge returns the entries of a policy that exceed a limit, by their index in spec.to. They are ignored.
func tooLarge(p Policy) map[int]Finding {
	found := map[int]Finding{}
	affinity := sets.New[string]()
	for _, e := range p.Entries() {
		var field, problem, remedy string
		switch conf := e.Default.(type) {
		case *kumav1alpha1.MeshHTTPRouteTo:
			field, problem, remedy = exceededLimit(conf)
		case *kumav1alpha1.MeshLoadBalancingStrategyConf:
			keys := sets.New(affinityKeys(conf)...).Union(affinity)
			if len(keys) > maxAffinityTags {
				field, remedy = "default.localityAwareness.localZone.affinityTags", "remove affinity tags"
				problem = fmt.Sprintf("the policy has more than %d affinity tags with those of the entry, and the entry is ignored", maxAffinityTags)
				break
			}
			affinity = keys
		}
		if field != "" {
			found[e.Index] = Finding{
				Kind: model.KindOf(p), Policy: objectName{p.GetNamespace(), p.GetName()}.String(),
				Field: fmt.Sprintf("spec.to[%d].%s", e.Index, field), Problem: problem, Remedy: remedy, ExceedsLimit: true,
			}
		}
	}
	return found
}

// exceededLimit returns the field by which an entry is too large, and what to do; empty if it is not.
func exceededLimit(to *kumav1alpha1.MeshHTTPRouteTo) (field, problem, remedy string) {
	matches := 0
	for _, rule := range to.Rules {
		matches += max(len(rule.Matches), 1)
	}
	switch {
	case len(to.Hostnames) > maxHostnames:
		return "hostnames", fmt.Sprintf("%d hostnames are more than %d, and the entry is ignored", len(to.Hostnames), maxHostnames),
			"use a wildcard such as *.example.org, or split the entry"
	case matches > maxMatches:
		return "rules", fmt.Sprintf("%d matches are more than %d, and the entry is ignored", matches, maxMatches),
			"match by prefix, or split the entry"
	}
	return "", "", ""
}

// Limits of all routes of a destination, in bytes: proxyless clients take 4 MiB, and a route is more than its rule.
const (
	maxRouteSize = 2 << 20
	minRuleSize  = 64
)

// routeSize is how large the routes of a destination are. A rule is there once for each of its hostnames; without any, once for
// all other requests and for each hostname of other rules.
type routeSize struct {
	hostnames      sets.Set[string]
	named, unnamed int
}

// add adds rules of a size, and says whether there is room for them.
func (s *routeSize) add(hostnames []string, size int) bool {
	added := sets.New(hostnames...).Difference(s.hostnames)
	named, unnamed := s.named+len(hostnames)*size, s.unnamed
	if len(hostnames) == 0 {
		unnamed += size
	}
	if named+unnamed*(len(s.hostnames)+len(added)+1) > maxRouteSize {
		return false
	}
	if s.hostnames == nil {
		s.hostnames = sets.New[string]()
	}
	s.hostnames.Insert(added.UnsortedList()...)
	s.named, s.unnamed = named, unnamed
	return true
}

// leftOut reports an entry for which there is no room.
func (e *entry) leftOut() Finding {
	return Finding{
		Kind: e.kind, Policy: e.policy.String(), Field: fmt.Sprintf("spec.to[%d]", e.index), ExceedsLimit: true,
		Problem: fmt.Sprintf("with it the routes of a destination, each rule once for each hostname, are larger than %d bytes, and the entry is left out", maxRouteSize),
		Remedy:  "remove rules or hostnames of the MeshHTTPRoutes for the destination",
	}
}
