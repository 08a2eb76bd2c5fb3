package build

import (
	"fmt"
	"net"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// WeightedCluster is a cluster and its share of the traffic.
type WeightedCluster struct {
	Name   string
	Weight uint32
}

// ListenerAddress is the address of a listener.
type ListenerAddress struct {
	Address string
	Port    uint32
	// Bind says that the proxy binds to the port. Otherwise connections are redirected to the proxy with their original
	// destination.
	Bind bool
}

// Name is the name of the listener.
func (p ListenerAddress) Name() string {
	return "outbound:" + net.JoinHostPort(p.Address, strconv.Itoa(int(p.Port)))
}

// NoCluster is the cluster of connections without a backend. No cluster has this name, so the proxy closes them and counts
// them as without a route.
const NoCluster = "fairlead.dev/nowhere"

// HTTPListener builds the listener of a destination with requests; the route configuration is fetched by name.
func HTTPListener(at ListenerAddress, routes string, s Settings) (*listenerv3.Listener, error) {
	m, err := connectionManager(routes, s)
	if err != nil {
		return nil, err
	}
	return outbound(at, "envoy.filters.network.http_connection_manager", m)
}

// TCPListener builds the listener of a destination with connections. Without clusters, connections are closed; without a
// listener they would bypass the proxy.
func TCPListener(at ListenerAddress, stats string, shares []WeightedCluster, s Settings) (*listenerv3.Listener, error) {
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
	return outbound(at, "envoy.filters.network.tcp_proxy", filter)
}

func outbound(at ListenerAddress, filter string, conf Message) (*listenerv3.Listener, error) {
	packed, err := extension(conf)
	if err != nil {
		return nil, err
	}
	return &listenerv3.Listener{
		Name:             at.Name(),
		Address:          socket(at.Address, at.Port),
		BindToPort:       wrapperspb.Bool(at.Bind),
		TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name:       filter,
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed},
		}}}},
	}, nil
}

// APIListenerName is the name of the API listener of a hostname and port.
func APIListenerName(hostname string, port uint32) string {
	return fmt.Sprintf("%s:%d", hostname, port)
}

// APIListener builds the listener of proxyless clients, by the name that they dial.
func APIListener(name, routes string, s Settings) (*listenerv3.Listener, error) {
	m, err := connectionManager(routes, s)
	if err != nil {
		return nil, err
	}
	packed, err := extension(m)
	if err != nil {
		return nil, err
	}
	return &listenerv3.Listener{Name: name, ApiListener: &listenerv3.ApiListener{ApiListener: packed}}, nil
}

func connectionManager(routes string, s Settings) (*hcmv3.HttpConnectionManager, error) {
	router, err := extension(&routerv3.Router{})
	if err != nil {
		return nil, err
	}
	http := s.httpTimeout()
	m := &hcmv3.HttpConnectionManager{
		StatPrefix:            routes,
		StreamIdleTimeout:     duration(http.StreamIdleTimeout),
		RequestHeadersTimeout: duration(http.RequestHeadersTimeout),
		RouteSpecifier:        &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ads(), RouteConfigName: routes}},
		HttpFilters: []*hcmv3.HttpFilter{{
			Name:       "envoy.filters.http.router",
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router},
		}},
	}
	if idle := duration(s.timeout().IdleTimeout); idle != nil {
		m.CommonHttpProtocolOptions = &corev3.HttpProtocolOptions{IdleTimeout: idle}
	}
	return m, nil
}
