package policy

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// AffinityTags are the tags by which local instances are preferred.
func AffinityTags(conf *kumav1alpha1.MeshLoadBalancingStrategyConf) []kumav1alpha1.AffinityTag {
	if conf == nil || conf.LocalityAwareness == nil || ptr.Deref(conf.LocalityAwareness.Disabled, false) {
		return nil
	}
	return ptr.Deref(conf.LocalityAwareness.LocalZone, kumav1alpha1.LocalZone{}).AffinityTags
}

func affinityKeys(conf *kumav1alpha1.MeshLoadBalancingStrategyConf) []string {
	var keys []string
	for _, tag := range AffinityTags(conf) {
		keys = append(keys, tag.Key)
	}
	return keys
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
