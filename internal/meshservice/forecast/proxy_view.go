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
	"google.golang.org/protobuf/types/known/anypb"

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

// decoded is a decoded resource: the endpoints of a cluster, the clusters of a route configuration, or the address of a
// listener with its clusters or the name of its route configuration.
type decoded struct {
	endpoints      []Endpoint
	clusters       []string
	address, route string
}

// reader caches decoded resources, which proxies share.
type reader map[*resource.Resource]decoded

func (r reader) read(from *resource.Resource) (decoded, error) {
	d, known := r[from]
	if known {
		return d, nil
	}
	message, err := from.Body.UnmarshalNew()
	switch m := message.(type) {
	case *endpointv3.ClusterLoadAssignment:
		d.endpoints = endpointsOf(m)
	case *routev3.RouteConfiguration:
		d.clusters = routeClusters(m)
	case *listenerv3.Listener:
		d, err = listenerOf(m)
	}
	if err != nil {
		return d, fmt.Errorf("read %s of %s: %w", from.Body.GetTypeUrl(), from.Name, err)
	}
	r[from] = d
	return d, nil
}

func (r reader) viewOf(config *resource.Config) (proxyView, error) {
	s := proxyView{clusters: map[string]cluster{}, calls: map[string]call{}}
	if config == nil {
		return s, nil
	}
	for _, c := range config.Of(resource.Cluster) {
		s.clusters[c.Name] = cluster{settings: c.Version}
	}
	for _, e := range config.Of(resource.Endpoint) {
		read, err := r.read(e)
		if err != nil {
			return proxyView{}, err
		}
		if c, ok := s.clusters[e.Name]; ok {
			c.endpoints = read.endpoints
			s.clusters[e.Name] = c
		}
	}
	for _, l := range config.Of(resource.Listener) {
		read, err := r.read(l)
		if err != nil {
			return proxyView{}, err
		}
		c := call{clusters: read.clusters, settings: l.Version}
		if route := config.Find(resource.Route, read.route); route != nil {
			routed, err := r.read(route)
			if err != nil {
				return proxyView{}, err
			}
			c = call{clusters: routed.clusters, settings: l.Version + route.Version}
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

func endpointsOf(assignment *endpointv3.ClusterLoadAssignment) []Endpoint {
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
	return found
}

func addressOf(a *corev3.Address) string {
	socket := a.GetSocketAddress()
	return net.JoinHostPort(socket.GetAddress(), strconv.FormatUint(uint64(socket.GetPortValue()), 10))
}

func listenerOf(l *listenerv3.Listener) (decoded, error) {
	d := decoded{address: addressOf(l.GetAddress())}
	var configs []*anypb.Any
	for _, chain := range l.GetFilterChains() {
		for _, filter := range chain.GetFilters() {
			configs = append(configs, filter.GetTypedConfig())
		}
	}
	if api := l.GetApiListener().GetApiListener(); api != nil {
		d.address, configs = l.GetName(), []*anypb.Any{api}
	}
	var manager hcmv3.HttpConnectionManager
	var tcp tcpv3.TcpProxy
	for _, config := range configs {
		switch {
		case config.MessageIs(&manager):
			err := config.UnmarshalTo(&manager)
			d.route, d.clusters = manager.GetRds().GetRouteConfigName(), routeClusters(manager.GetRouteConfig())
			return d, err
		case config.MessageIs(&tcp):
			err := config.UnmarshalTo(&tcp)
			d.clusters = tcpClusters(&tcp)
			return d, err
		}
	}
	return d, nil
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
