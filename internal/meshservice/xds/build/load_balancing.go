package build

import (
	"math/big"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	maglevv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/maglev/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	roundv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	localityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// Limits of Envoy.
const (
	minChoices     = 2
	maxRingSize    = 8 << 20
	maxMaglevTable = 5000011
	primalityTests = 20
)

// setLoadBalancing sets the load balancing policy of a cluster.
func setLoadBalancing(c *clusterv3.Cluster, conf *kumav1alpha1.MeshLoadBalancingStrategyConf) error {
	if conf == nil {
		return nil
	}
	a := conf.LocalityAwareness
	weighted := a != nil && a.LocalZone != nil && len(a.LocalZone.AffinityTags) > 0
	if weighted {
		c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{
			LocalityConfigSpecifier: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
				LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
			},
		}
	}
	b := conf.LoadBalancer
	if b == nil {
		return nil
	}
	switch b.Type {
	case "LeastRequest":
		c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
		if b.LeastRequest != nil && b.LeastRequest.ChoiceCount != nil {
			c.LbConfig = &clusterv3.Cluster_LeastRequestLbConfig_{LeastRequestLbConfig: &clusterv3.Cluster_LeastRequestLbConfig{
				ChoiceCount: wrapperspb.UInt32(uint32(max(*b.LeastRequest.ChoiceCount, minChoices))),
			}}
		}
	case "RingHash":
		c.LbPolicy = clusterv3.Cluster_RING_HASH
		if b.RingHash != nil {
			c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: ringHashConfig(b.RingHash)}
		}
	case "Random":
		random := &randomv3.Random{}
		if weighted {
			random.LocalityLbConfig = localityWeighted()
		}
		return setLoadBalancingPolicy(c, "random", random)
	case "Maglev":
		maglev := &maglevv3.Maglev{}
		if b.Maglev != nil {
			maglev.TableSize = maglevTableSize(b.Maglev.TableSize)
		}
		if weighted {
			maglev.LocalityWeightedLbConfig = localityWeighted().GetLocalityWeightedLbConfig()
		}
		return setLoadBalancingPolicy(c, "maglev", maglev)
	}
	return nil
}

func localityWeighted() *commonv3.LocalityLbConfig {
	return &commonv3.LocalityLbConfig{LocalityConfigSpecifier: &commonv3.LocalityLbConfig_LocalityWeightedLbConfig_{
		LocalityWeightedLbConfig: &commonv3.LocalityLbConfig_LocalityWeightedLbConfig{},
	}}
}

// setLoadBalancingPolicy sets a policy that proxyless clients do not support, with round robin as fallback: they would
// reject the cluster otherwise.
func setLoadBalancingPolicy(c *clusterv3.Cluster, name string, policy Message) error {
	turns, err := extension(&roundv3.RoundRobin{})
	if err != nil {
		return err
	}
	fallback := &localityv3.WrrLocality{EndpointPickingPolicy: policies(typed("round_robin", turns))}
	first, err := extension(policy)
	if err != nil {
		return err
	}
	second, err := extension(fallback)
	if err != nil {
		return err
	}
	c.LoadBalancingPolicy = policies(typed(name, first), typed("wrr_locality", second))
	return nil
}

func policies(list ...*corev3.TypedExtensionConfig) *clusterv3.LoadBalancingPolicy {
	all := &clusterv3.LoadBalancingPolicy{}
	for _, conf := range list {
		all.Policies = append(all.Policies, &clusterv3.LoadBalancingPolicy_Policy{TypedExtensionConfig: conf})
	}
	return all
}

func ringHashConfig(r *kumav1alpha1.RingHash) *clusterv3.Cluster_RingHashLbConfig {
	conf := &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: ringSize(r.MinRingSize), MaximumRingSize: ringSize(r.MaxRingSize)}
	if conf.MaximumRingSize != nil && conf.MinimumRingSize.GetValue() > conf.MaximumRingSize.Value {
		conf.MinimumRingSize = wrapperspb.UInt64(conf.MaximumRingSize.Value)
	}
	if r.HashFunction == "MurmurHash2" {
		conf.HashFunction = clusterv3.Cluster_RingHashLbConfig_MURMUR_HASH_2
	}
	return conf
}

// ringSize limits a ring size to what Envoy accepts.
func ringSize(n *int32) *wrapperspb.UInt64Value {
	if n == nil || *n <= 0 {
		return nil
	}
	return wrapperspb.UInt64(uint64(min(*n, maxRingSize)))
}

// maglevTableSize returns the size of a Maglev table; Envoy accepts only prime numbers.
func maglevTableSize(n *int32) *wrapperspb.UInt64Value {
	if n == nil || *n > maxMaglevTable || !big.NewInt(int64(*n)).ProbablyPrime(primalityTests) {
		return nil
	}
	return wrapperspb.UInt64(uint64(*n))
}

func typed(name string, conf *anypb.Any) *corev3.TypedExtensionConfig {
	return &corev3.TypedExtensionConfig{Name: "envoy.load_balancing_policies." + name, TypedConfig: conf}
}
