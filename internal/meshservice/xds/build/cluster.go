package build

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

const httpProtocolOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// Cluster builds the EDS cluster of a destination. Its name is also its stat name.
func Cluster(name string, protocol model.Protocol, s Settings) (*clusterv3.Cluster, error) {
	c := &clusterv3.Cluster{
		Name:                 name,
		AltStatName:          name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads},
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
