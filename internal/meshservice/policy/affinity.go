package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// AffinityTags are the tags by which local instances are preferred.
func AffinityTags(conf *kumav1alpha1.MeshLoadBalancingStrategyConf) []kumav1alpha1.AffinityTag {
	if conf == nil || conf.LocalityAwareness == nil || ptr.Deref(conf.LocalityAwareness.Disabled, false) {
		return nil
	}
	return localZone(conf).AffinityTags
}

func localZone(conf *kumav1alpha1.MeshLoadBalancingStrategyConf) kumav1alpha1.LocalZone {
	return ptr.Deref(ptr.Deref(conf.LocalityAwareness, kumav1alpha1.LocalityAwareness{}).LocalZone, kumav1alpha1.LocalZone{})
}

// affinityKeys are the keys of an entry, also of a disabled one: another entry may enable it.
func affinityKeys(conf *kumav1alpha1.MeshLoadBalancingStrategyConf) []string {
	var keys []string
	for _, tag := range localZone(conf).AffinityTags {
		keys = append(keys, tag.Key)
	}
	return keys
}

// forAnyProxy is the configuration of a tenant's entry for the proxies of others: of its affinity tags those that say where a
// proxy runs. By others, such as the name of a pod, a tenant would have each proxy of the mesh get a configuration of its own.
func forAnyProxy(conf any) any {
	strategy, ok := conf.(*kumav1alpha1.MeshLoadBalancingStrategyConf)
	if !ok || !slices.ContainsFunc(affinityKeys(strategy), func(key string) bool { return !isTopology(key) }) {
		return conf
	}
	strategy = strategy.DeepCopy()
	zone := strategy.LocalityAwareness.LocalZone
	zone.AffinityTags = slices.DeleteFunc(zone.AffinityTags, func(tag kumav1alpha1.AffinityTag) bool { return !isTopology(tag.Key) })
	return strategy
}

// isTopology tells whether the values of a tag are places, such as nodes and zones.
func isTopology(key string) bool {
	prefix, _, found := strings.Cut(key, "/")
	return found && slices.Contains([]string{"topology.kubernetes.io", "kubernetes.io", "k8s.io", "kuma.io"}, prefix)
}

// AffinityKeys are the keys of the affinity tags of all entries that may apply to the proxies.
func (c *Class) AffinityKeys() sets.Set[string] { return c.affinityKeys }

func affinityKeysOf(groups []*group) sets.Set[string] {
	keys := sets.New[string]()
	for _, g := range groups {
		for key := range g.affinityKeys {
			keys.Insert(key)
		}
	}
	return keys
}
