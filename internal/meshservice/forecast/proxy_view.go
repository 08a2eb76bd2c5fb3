package forecast

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// proxyView is the decoded configuration of a proxy.
type proxyView struct {
	clusters map[string]cluster
	// calls are listeners by address or hostname.
	calls map[string]call
}

type cluster struct {
	endpoints []Endpoint
	// settings is the version without endpoints.
	settings string
}

type call struct {
	clusters []string
	settings string
}

// reader caches decoded resources, which proxies share.
type reader struct {
	endpoints map[*resource.Resource][]Endpoint
	routes    map[*resource.Resource][]string
	listeners map[*resource.Resource]listener
}

func newReader() *reader {
	return &reader{
		endpoints: map[*resource.Resource][]Endpoint{},
		routes:    map[*resource.Resource][]string{},
		listeners: map[*resource.Resource]listener{},
	}
}

// readOnce decodes a resource once.
func readOnce[V any](known map[*resource.Resource]V, r *resource.Resource, read func(*resource.Resource) (V, error)) (V, error) {
	if v, ok := known[r]; ok {
		return v, nil
	}
	v, err := read(r)
	if err != nil {
		return v, fmt.Errorf("read %s of %s: %w", r.Body.GetTypeUrl(), r.Name, err)
	}
	known[r] = v
	return v, nil
}

func (r *reader) viewOf(config *resource.Config) (proxyView, error) {
	s := proxyView{clusters: map[string]cluster{}, calls: map[string]call{}}
	if config == nil {
		return s, nil
	}
	for _, c := range config.Of(resource.Cluster) {
		s.clusters[c.Name] = cluster{settings: c.Version}
	}
	for _, e := range config.Of(resource.Endpoint) {
		endpoints, err := readOnce(r.endpoints, e, endpointsOf)
		if err != nil {
			return proxyView{}, err
		}
		if c, ok := s.clusters[e.Name]; ok {
			c.endpoints = endpoints
			s.clusters[e.Name] = c
		}
	}
	for _, l := range config.Of(resource.Listener) {
		read, err := readOnce(r.listeners, l, listenerOf)
		if err != nil {
			return proxyView{}, err
		}
		c := call{clusters: read.clusters, settings: l.Version}
		if route := config.Find(resource.Route, read.route); route != nil {
			clusters, err := readOnce(r.routes, route, routeOf)
			if err != nil {
				return proxyView{}, err
			}
			c = call{clusters: clusters, settings: l.Version + route.Version}
		}
		s.calls[read.address] = c
	}
	return s, nil
}

// zonesOf returns the zones of the endpoints of clusters.
func (s proxyView) zonesOf(clusters []string) *Side {
	priority := map[string]uint32{}
	for _, name := range clusters {
		for _, e := range s.clusters[name].endpoints {
			if known, seen := priority[e.Zone]; !seen || e.Priority < known {
				priority[e.Zone] = e.Priority
			}
		}
	}
	side := &Side{Zones: []string{}}
	for _, zone := range slices.Sorted(maps.Keys(priority)) {
		if priority[zone] == 0 {
			side.Zones = append(side.Zones, zone)
		} else {
			side.Fallback = append(side.Fallback, zone)
		}
	}
	return side
}

func endpointsOf(r *resource.Resource) ([]Endpoint, error) {
	var assignment endpointv3.ClusterLoadAssignment
	if err := proto.Unmarshal(r.Body.GetValue(), &assignment); err != nil {
		return nil, err
	}
	var found []Endpoint
	for _, locality := range assignment.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			if e.GetHealthStatus() == corev3.HealthStatus_UNHEALTHY {
				continue
			}
			found = append(found, Endpoint{
				Address: addressOf(e.GetEndpoint().GetAddress()), Zone: locality.GetLocality().GetZone(), Priority: locality.GetPriority(),
			})
		}
	}
	slices.SortFunc(found, compareEndpoints)
	return found, nil
}

func addressOf(a *corev3.Address) string {
	socket := a.GetSocketAddress()
	return net.JoinHostPort(socket.GetAddress(), strconv.FormatUint(uint64(socket.GetPortValue()), 10))
}

// listener is a decoded listener: its route configuration, or its clusters.
type listener struct {
	address  string
	route    string
	clusters []string
}

func listenerOf(r *resource.Resource) (listener, error) {
	var l listenerv3.Listener
	if err := proto.Unmarshal(r.Body.GetValue(), &l); err != nil {
		return listener{}, err
	}
	if api := l.GetApiListener().GetApiListener(); api != nil {
		var manager hcmv3.HttpConnectionManager
		err := api.UnmarshalTo(&manager)
		return fromConnectionManager(l.GetName(), &manager), err
	}
	dialled := addressOf(l.GetAddress())
	for _, chain := range l.GetFilterChains() {
		for _, filter := range chain.GetFilters() {
			var manager hcmv3.HttpConnectionManager
			var tcp tcpv3.TcpProxy
			switch config := filter.GetTypedConfig(); {
			case config.MessageIs(&manager):
				err := config.UnmarshalTo(&manager)
				return fromConnectionManager(dialled, &manager), err
			case config.MessageIs(&tcp):
				err := config.UnmarshalTo(&tcp)
				return listener{address: dialled, clusters: tcpClusters(&tcp)}, err
			}
		}
	}
	return listener{address: dialled}, nil
}

func fromConnectionManager(dialled string, manager *hcmv3.HttpConnectionManager) listener {
	return listener{address: dialled, route: manager.GetRds().GetRouteConfigName(), clusters: routeClusters(manager.GetRouteConfig())}
}

func tcpClusters(tcp *tcpv3.TcpProxy) []string {
	if tcp.GetCluster() == build.NoCluster {
		return nil
	}
	clusters := []string{tcp.GetCluster()}
	for _, weighted := range tcp.GetWeightedClusters().GetClusters() {
		clusters = append(clusters, weighted.GetName())
	}
	return sortedUnique(clusters)
}

func routeOf(r *resource.Resource) ([]string, error) {
	var config routev3.RouteConfiguration
	if err := proto.Unmarshal(r.Body.GetValue(), &config); err != nil {
		return nil, err
	}
	return routeClusters(&config), nil
}

func routeClusters(config *routev3.RouteConfiguration) []string {
	var clusters []string
	for _, host := range config.GetVirtualHosts() {
		for _, route := range host.GetRoutes() {
			clusters = append(clusters, route.GetRoute().GetCluster())
			for _, weighted := range route.GetRoute().GetWeightedClusters().GetClusters() {
				clusters = append(clusters, weighted.GetName())
			}
		}
	}
	return sortedUnique(clusters)
}

// sortedUnique returns the names in order, without duplicates and empty ones.
func sortedUnique(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return strings.TrimSpace(name) == "" })
}
