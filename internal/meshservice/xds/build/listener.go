package build

import (
	"fmt"
	"net"
	"strconv"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// WeightedCluster is a cluster and its share of the traffic.
type WeightedCluster struct {
	Name   string
	Weight uint32
}

// Address is where a destination is called: at an IP address, or by the hostname that a proxyless client dials.
type Address struct {
	// Name is the name of the listener.
	Name string
	Host string
	Port uint32
	// API says that Host is a hostname.
	API bool
	// Bind says that the proxy binds to the port. Otherwise connections are redirected to the proxy with their original
	// destination.
	Bind bool
}

// IPAddress is an address that is dialled through a proxy.
func IPAddress(ip string, port uint32) Address {
	return Address{Name: "outbound:" + net.JoinHostPort(ip, strconv.Itoa(int(port))), Host: ip, Port: port}
}

// HostAddress is an address that proxyless clients dial.
func HostAddress(hostname string, port uint32) Address {
	return Address{Name: fmt.Sprintf("%s:%d", hostname, port), Host: hostname, Port: port, API: true}
}

// NoCluster is the cluster of connections without a backend. No cluster has this name, so the proxy closes them and counts
// them as without a route.
const NoCluster = "fairlead.dev/nowhere"

// Listener builds the listener of an address. That of requests fetches its route configuration by name, and that of
// connections has clusters. Without clusters, connections are closed; without a listener they would bypass the proxy.
func Listener(
	at Address, protocol model.Protocol, routes string, shares []WeightedCluster, s Settings,
) (*listenerv3.Listener, error) {
	name, filter := "envoy.filters.network.http_connection_manager", connectionManager
	if !at.API && !protocol.HasRequests() {
		name, filter = "envoy.filters.network.tcp_proxy", tcpProxy
	}
	packed, err := filter(routes, shares, s)
	if err != nil {
		return nil, err
	}
	if at.API {
		return &listenerv3.Listener{Name: at.Name, ApiListener: &listenerv3.ApiListener{ApiListener: packed}}, nil
	}
	return &listenerv3.Listener{
		Name:             at.Name,
		Address:          socket(at.Host, at.Port),
		BindToPort:       wrapperspb.Bool(at.Bind),
		TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name:       name,
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed},
		}}}},
	}, nil
}

func tcpProxy(stats string, shares []WeightedCluster, s Settings) (*anypb.Any, error) {
	filter := &tcpv3.TcpProxy{StatPrefix: stats, IdleTimeout: duration(s.timeout().IdleTimeout)}
	switch shares = withWeight(shares); len(shares) {
	case 0:
		filter.ClusterSpecifier = &tcpv3.TcpProxy_Cluster{Cluster: NoCluster}
	case 1:
		filter.ClusterSpecifier = &tcpv3.TcpProxy_Cluster{Cluster: shares[0].Name}
	default:
		several := &tcpv3.TcpProxy_WeightedCluster{}
		for _, share := range shares {
			several.Clusters = append(several.Clusters, &tcpv3.TcpProxy_WeightedCluster_ClusterWeight{Name: share.Name, Weight: share.Weight})
		}
		filter.ClusterSpecifier = &tcpv3.TcpProxy_WeightedClusters{WeightedClusters: several}
	}
	if s.Retry != nil && s.Retry.TCP != nil {
		if n := uint32Value(s.Retry.TCP.MaxConnectAttempt); n.GetValue() > 0 {
			filter.MaxConnectAttempts = n
		}
	}
	return extension(filter)
}

// routerFilter is the same in all listeners.
var routerFilter = sync.OnceValues(func() (*anypb.Any, error) { return extension(&routerv3.Router{}) })

func connectionManager(routes string, _ []WeightedCluster, s Settings) (*anypb.Any, error) {
	router, err := routerFilter()
	if err != nil {
		return nil, err
	}
	http := s.httpTimeout()
	m := &hcmv3.HttpConnectionManager{
		StatPrefix:            routes,
		StreamIdleTimeout:     duration(http.StreamIdleTimeout),
		RequestHeadersTimeout: duration(http.RequestHeadersTimeout),
		RouteSpecifier:        &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ads, RouteConfigName: routes}},
		HttpFilters: []*hcmv3.HttpFilter{{
			Name:       "envoy.filters.http.router",
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router},
		}},
	}
	if idle := duration(s.timeout().IdleTimeout); idle != nil {
		m.CommonHttpProtocolOptions = &corev3.HttpProtocolOptions{IdleTimeout: idle}
	}
	return extension(m)
}
