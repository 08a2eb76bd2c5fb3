package snapshot

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
)

// localities returns the ready endpoints of a destination by priority, for a proxy with these tags, and the
// overprovisioning factor if one is set.
func localities(d *destination, zone string, conf *kumav1alpha1.MeshLoadBalancingStrategyConf, tags map[string]string) ([]build.Locality, uint32) {
	byZone := map[string][]model.Endpoint{}
	seen := map[string]bool{}
	for _, e := range d.endpoints {
		address := e.Address + " " + strconv.Itoa(int(e.Port))
		// Clients reject the same address in two localities.
		if e.Ready && !seen[address] {
			seen[address] = true
			byZone[e.Zone] = append(byZone[e.Zone], e)
		}
	}
	tiers, overprovisioning := zonePriorities(d, zone, byZone, conf)
	var list []build.Locality
	var priority uint32
	for _, zones := range tiers {
		before := len(list)
		for _, z := range zones {
			if len(byZone[z]) == 0 {
				continue
			}
			if z == zone {
				list = append(list, localZoneLocalities(zone, byZone[z], policy.AffinityTags(conf), tags, priority)...)
			} else {
				list = append(list, build.Locality{Zone: z, Priority: priority, Endpoints: byZone[z]})
			}
		}
		if len(list) > before {
			priority++
		}
	}
	return list, overprovisioning
}

// zonePriorities are the zones of each priority.
func zonePriorities(d *destination, zone string, byZone map[string][]model.Endpoint, conf *kumav1alpha1.MeshLoadBalancingStrategyConf) ([][]string, uint32) {
	var others []string
	for z := range byZone {
		if z != zone {
			others = append(others, z)
		}
	}
	slices.Sort(others)
	together := [][]string{append([]string{zone}, others...)}
	if d.Key.Kind == model.MeshService {
		return together, 0
	}
	if conf == nil || conf.LocalityAwareness == nil {
		if d.localFirst {
			return [][]string{{zone}, others}, 0
		}
		return together, 0
	}
	aware := conf.LocalityAwareness
	if ptr.Deref(aware.Disabled, false) {
		return together, 0
	}
	// Locality awareness without crossZone stays in the local zone.
	tiers := [][]string{{zone}}
	if aware.CrossZone == nil {
		return tiers, 0
	}
	for _, f := range aware.CrossZone.Failover {
		if f.From != nil && !slices.Contains(f.From.Zones, zone) {
			continue
		}
		if f.To.Type == "None" {
			break
		}
		var tier []string
		for _, z := range others {
			listed := slices.Contains(f.To.Zones, z)
			if f.To.Type == "Any" || f.To.Type == "Only" && listed || f.To.Type == "AnyExcept" && !listed {
				tier = append(tier, z)
			}
		}
		others = slices.DeleteFunc(others, func(z string) bool { return slices.Contains(tier, z) })
		tiers = append(tiers, tier)
	}
	return tiers, overprovisioning(aware.CrossZone.FailoverThreshold)
}

// overprovisioning is the factor by which the next priority is used below a percentage of healthy endpoints.
func overprovisioning(threshold *kumav1alpha1.FailoverThreshold) uint32 {
	if threshold == nil {
		return 0
	}
	percentage, err := strconv.ParseFloat(strings.TrimSuffix(threshold.Percentage.String(), "%"), 64)
	if err != nil || percentage <= 0 || percentage > 100 {
		return 0
	}
	return uint32(math.Round(100 * 100 / percentage))
}

// localZoneLocalities are the endpoints of the local zone: those that share an affinity tag with the proxy form a locality,
// with more weight the earlier the tag.
func localZoneLocalities(zone string, endpoints []model.Endpoint, preferred []kumav1alpha1.AffinityTag, tags map[string]string, priority uint32) []build.Locality {
	if len(preferred) == 0 {
		return []build.Locality{{Zone: zone, Priority: priority, Endpoints: endpoints}}
	}
	byTag := make([][]model.Endpoint, len(preferred)+1) // those without a shared tag come last
	for _, e := range endpoints {
		i := slices.IndexFunc(preferred, func(tag kumav1alpha1.AffinityTag) bool {
			value, found := tags[tag.Key]
			return found && e.Tags[tag.Key] == value
		})
		if i < 0 {
			i = len(preferred)
		}
		byTag[i] = append(byTag[i], e)
	}
	var list []build.Locality
	for i, near := range byTag {
		l := build.Locality{Zone: zone, Priority: priority, Weight: 1, Endpoints: near}
		if i < len(preferred) {
			l.SubZone, l.Weight = preferred[i].Key+"="+tags[preferred[i].Key], affinityWeight(preferred, i)
		}
		if len(near) > 0 {
			list = append(list, l)
		}
	}
	return list
}

// affinityWeight is the written weight of a tag, or nine times that of all later tags.
func affinityWeight(preferred []kumav1alpha1.AffinityTag, i int) uint32 {
	if w := preferred[i].Weight; w != nil && *w > 0 {
		return uint32(*w)
	}
	return 9 * uint32(math.Pow10(min(len(preferred)-i-1, 8)))
}
