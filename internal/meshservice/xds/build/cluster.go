package build

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

const httpProtocolOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// Cluster builds the EDS cluster of a destination. Its name is also its stat name.
func Cluster(name string, protocol model.Protocol, s Settings) (*clusterv3.Cluster, error) {
	c := &clusterv3.Cluster{
		Name:                 name,
		AltStatName:          name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads()},
		ConnectTimeout:       durationpb.New(connectTimeout),
	}
	if d := positiveDuration(s.timeout().ConnectionTimeout); d != nil {
		c.ConnectTimeout = d
	}
	if options := protocolOptions(protocol, s); options != nil {
		packed, err := extension(options)
		if err != nil {
			return nil, err
		}
		c.TypedExtensionProtocolOptions = map[string]*anypb.Any{httpProtocolOptions: packed}
	}
	setCircuitBreakers(c, s.CircuitBreaker)
	return c, setLoadBalancing(c, s.LoadBalancing)
}

func protocolOptions(protocol model.Protocol, s Settings) *httpv3.HttpProtocolOptions {
	if !protocol.HasRequests() {
		return nil
	}
	explicit := &httpv3.HttpProtocolOptions_ExplicitHttpConfig{}
	if protocol == model.HTTP {
		explicit.ProtocolConfig = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
			HttpProtocolOptions: &corev3.Http1ProtocolOptions{},
		}
	} else {
		explicit.ProtocolConfig = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
			Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
		}
	}
	options := &httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: explicit},
	}
	idle, connection := duration(s.timeout().IdleTimeout), positiveDuration(s.httpTimeout().MaxConnectionDuration)
	if idle != nil || connection != nil {
		options.CommonHttpProtocolOptions = &corev3.HttpProtocolOptions{IdleTimeout: idle, MaxConnectionDuration: connection}
	}
	return options
}

// Locality is a set of endpoints with one priority and weight.
type Locality struct {
	Zone, SubZone string
	// Priority is 0 for the first. Priorities have no gaps.
	Priority uint32
	// Weight among those of the same priority. Zero is the sum of its endpoints.
	Weight    uint32
	Endpoints []model.Endpoint
}

// Endpoints builds the ClusterLoadAssignment of a cluster. Overprovisioning, if not zero, is the overprovisioning factor.
func Endpoints(cluster string, localities []Locality, overprovisioning uint32) *endpointv3.ClusterLoadAssignment {
	cla := &endpointv3.ClusterLoadAssignment{ClusterName: cluster}
	if overprovisioning != 0 {
		cla.Policy = &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(overprovisioning)}
	}
	for _, l := range localities {
		weight := l.Weight
		endpoints := make([]*endpointv3.LbEndpoint, len(l.Endpoints))
		for i, e := range l.Endpoints {
			endpoints[i] = &endpointv3.LbEndpoint{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socket(e.Address, e.Port)}},
			}
			if e.Weight > 1 {
				endpoints[i].LoadBalancingWeight = wrapperspb.UInt32(e.Weight)
			}
			if l.Weight == 0 {
				weight += max(e.Weight, 1)
			}
		}
		cla.Endpoints = append(cla.Endpoints, &endpointv3.LocalityLbEndpoints{
			Locality:            &corev3.Locality{Zone: l.Zone, SubZone: l.SubZone},
			LbEndpoints:         endpoints,
			LoadBalancingWeight: wrapperspb.UInt32(weight),
			Priority:            l.Priority,
		})
	}
	return cla
}
