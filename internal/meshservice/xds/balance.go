package xds

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// balance makes a cluster choose among endpoints as it is told.
func balance(c *clusterv3.Cluster, conf *kumav1alpha1.MeshLoadBalancingStrategyConf) {
	if conf == nil {
		return
	}
	if a := conf.LocalityAwareness; a != nil && a.LocalZone != nil && len(a.LocalZone.AffinityTags) > 0 {
		c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{
			LocalityConfigSpecifier: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
				LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
			},
		}
	}
	b := conf.LoadBalancer
	if b == nil {
		return
	}
	switch b.Type {
	case "LeastRequest":
		c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
		if b.LeastRequest != nil && b.LeastRequest.ChoiceCount != nil {
			c.LbConfig = &clusterv3.Cluster_LeastRequestLbConfig_{LeastRequestLbConfig: &clusterv3.Cluster_LeastRequestLbConfig{
				ChoiceCount: number(b.LeastRequest.ChoiceCount),
			}}
		}
	case "RingHash":
		c.LbPolicy = clusterv3.Cluster_RING_HASH
		if b.RingHash != nil {
			c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: ring(b.RingHash)}
		}
	case "Random":
		c.LbPolicy = clusterv3.Cluster_RANDOM
	case "Maglev":
		c.LbPolicy = clusterv3.Cluster_MAGLEV
		if b.Maglev != nil && b.Maglev.TableSize != nil {
			c.LbConfig = &clusterv3.Cluster_MaglevLbConfig_{MaglevLbConfig: &clusterv3.Cluster_MaglevLbConfig{
				TableSize: wide(b.Maglev.TableSize),
			}}
		}
	}
}

func ring(r *kumav1alpha1.RingHash) *clusterv3.Cluster_RingHashLbConfig {
	conf := &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: wide(r.MinRingSize), MaximumRingSize: wide(r.MaxRingSize)}
	if r.HashFunction == "MurmurHash2" {
		conf.HashFunction = clusterv3.Cluster_RingHashLbConfig_MURMUR_HASH_2
	}
	return conf
}

func wide(n *int32) *wrapperspb.UInt64Value {
	if n == nil || *n < 0 {
		return nil
	}
	return wrapperspb.UInt64(uint64(*n))
}
