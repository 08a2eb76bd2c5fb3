package build

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	maglevv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/maglev/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	roundv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	localityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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
		return setLoadBalancingPolicy(c, random)
	case "Maglev":
		maglev := &maglevv3.Maglev{}
		if b.Maglev != nil {
			maglev.TableSize = maglevTableSize(b.Maglev.TableSize)
		}
		if weighted {
			maglev.LocalityWeightedLbConfig = localityWeighted().GetLocalityWeightedLbConfig()
		}
		return setLoadBalancingPolicy(c, maglev)
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
func setLoadBalancingPolicy(c *clusterv3.Cluster, policy Message) error {
	roundRobin, err := loadBalancingPolicy(&roundv3.RoundRobin{})
	if err != nil {
		return err
	}
	c.LoadBalancingPolicy, err = loadBalancingPolicy(policy, &localityv3.WrrLocality{EndpointPickingPolicy: roundRobin})
	return err
}

// loadBalancingPolicy lists policies, of which a client uses the first that it supports.
func loadBalancingPolicy(list ...Message) (*clusterv3.LoadBalancingPolicy, error) {
	all := &clusterv3.LoadBalancingPolicy{}
	for _, policy := range list {
		packed, err := extension(policy)
		if err != nil {
			return nil, err
		}
		// envoy.extensions.load_balancing_policies.NAME.v3
		name := strings.Split(string(policy.ProtoReflect().Descriptor().ParentFile().Package()), ".")[3]
		all.Policies = append(all.Policies, &clusterv3.LoadBalancingPolicy_Policy{TypedExtensionConfig: &corev3.TypedExtensionConfig{
			Name: "envoy.load_balancing_policies." + name, TypedConfig: packed,
		}})
	}
	return all, nil
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

// hashPolicy is a hash policy as written.
type hashPolicy struct {
	Type           string      `json:"type"`
	Terminal       bool        `json:"terminal"`
	Header         *hashedName `json:"header"`
	QueryParameter *hashedName `json:"queryParameter"`
	Cookie         *struct {
		hashedName
		TTL  *metav1.Duration `json:"ttl"`
		Path string           `json:"path"`
	} `json:"cookie"`
	Connection *struct {
		SourceIP bool `json:"sourceIP"`
	} `json:"connection"`
	FilterState *struct {
		Key string `json:"key"`
	} `json:"filterState"`
}

type hashedName struct {
	Name string `json:"name"`
}

// hashPolicies returns the hash policies of a RingHash or Maglev load balancer. Unknown ones are left out.
func hashPolicies(conf *kumav1alpha1.MeshLoadBalancingStrategyConf) []*routev3.RouteAction_HashPolicy {
	if conf == nil || conf.LoadBalancer == nil {
		return nil
	}
	var written []apiextensionsv1.JSON
	switch b := conf.LoadBalancer; b.Type {
	case "RingHash":
		written = ptr.Deref(b.RingHash, kumav1alpha1.RingHash{}).HashPolicies
	case "Maglev":
		written = ptr.Deref(b.Maglev, kumav1alpha1.Maglev{}).HashPolicies
	default:
		return nil
	}
	var list []*routev3.RouteAction_HashPolicy
	for _, w := range slices.Concat(conf.HashPolicies, written) {
		var p hashPolicy
		if err := json.Unmarshal(w.Raw, &p); err != nil {
			continue
		}
		if policy := p.policy(); policy != nil && policy.Validate() == nil {
			list = append(list, policy)
		}
	}
	return list
}

func (p hashPolicy) policy() *routev3.RouteAction_HashPolicy {
	policy := &routev3.RouteAction_HashPolicy{Terminal: p.Terminal}
	switch {
	case p.Type == "Header" && p.Header != nil:
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_Header_{Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: p.Header.Name}}
	case p.Type == "QueryParameter" && p.QueryParameter != nil:
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_QueryParameter_{
			QueryParameter: &routev3.RouteAction_HashPolicy_QueryParameter{Name: p.QueryParameter.Name},
		}
	case p.Type == "Cookie" && p.Cookie != nil:
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_Cookie_{Cookie: &routev3.RouteAction_HashPolicy_Cookie{
			Name: p.Cookie.Name, Ttl: duration(p.Cookie.TTL), Path: p.Cookie.Path,
		}}
	case (p.Type == "Connection" || p.Type == "SourceIP") && (p.Connection == nil || p.Connection.SourceIP):
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_ConnectionProperties_{
			ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: true},
		}
	case p.Type == "FilterState" && p.FilterState != nil:
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_FilterState_{FilterState: &routev3.RouteAction_HashPolicy_FilterState{Key: p.FilterState.Key}}
	default:
		return nil
	}
	return policy
}
