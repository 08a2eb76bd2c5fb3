package callers

import (
	"net"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

func pack(message proto.Message) *anypb.Any {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		panic(err)
	}
	return &anypb.Any{TypeUrl: "type.googleapis.com/" + string(proto.MessageName(message)), Value: raw}
}

func made(name string, message proto.Message) *resource.Resource {
	r, err := resource.Marshal(name, message)
	if err != nil {
		panic(err)
	}
	return r
}

func overADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

// Cluster takes its endpoints from the control plane.
func Cluster(name string) *resource.Resource {
	return made(name, &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: overADS()},
	})
}

// Endpoints are those of a cluster.
func Endpoints(cluster string, addresses ...*net.TCPAddr) *resource.Resource {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: cluster}
	locality := &endpointv3.LocalityLbEndpoints{LoadBalancingWeight: wrapperspb.UInt32(1), Locality: &corev3.Locality{Zone: "here"}}
	for _, address := range addresses {
		locality.LbEndpoints = append(locality.LbEndpoints, &endpointv3.LbEndpoint{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{
				Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: address.IP.String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(address.Port)},
				}},
			}}},
		})
	}
	a.Endpoints = append(a.Endpoints, locality)
	return made(cluster, a)
}

// Listener is for clients without a proxy.
func Listener(name, routes string) *resource.Resource {
	return made(name, &listenerv3.Listener{Name: name, ApiListener: &listenerv3.ApiListener{ApiListener: pack(&hcmv3.HttpConnectionManager{
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: routes, ConfigSource: overADS()}},
		HttpFilters: []*hcmv3.HttpFilter{{
			Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(&routerv3.Router{})},
		}},
	})}})
}

// Route leads all requests to a cluster.
func Route(name, cluster string) *resource.Resource {
	return made(name, &routev3.RouteConfiguration{Name: name, VirtualHosts: []*routev3.VirtualHost{{
		Name: name, Domains: []string{"*"}, Routes: []*routev3.Route{{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
		}},
	}}})
}

// Leads is a configuration with one target that leads to a cluster by way of routes, and these clusters with their
// endpoints.
func Leads(target, routes, to string, clusters map[string][]*net.TCPAddr) *resource.Config {
	all := map[resource.Type][]*resource.Resource{
		resource.Listener: {Listener(target, routes)},
		resource.Route:    {Route(routes, to)},
	}
	for name, addresses := range clusters {
		all[resource.Cluster] = append(all[resource.Cluster], Cluster(name))
		all[resource.Endpoint] = append(all[resource.Endpoint], Endpoints(name, addresses...))
	}
	return resource.NewConfig(all)
}
