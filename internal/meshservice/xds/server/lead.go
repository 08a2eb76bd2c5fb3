package server

import (
	"slices"
	"strings"
	"sync"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// introduction is the path of a route that nobody takes: it stands after those that take everything. It names a cluster, so
// that a client without a proxy makes itself ready to call it.
const introduction = "/fairlead.dev/introduction"

// maxLeads bounds what is remembered of resources, which are looked into again if need be.
const maxLeads = 4096

// lead is where a resource leads its proxy.
type lead struct {
	// routes are those of a listener for clients without a proxy.
	routes string
	// clusters are those of routes, and guests those that are only introduced.
	clusters, guests []string
}

// leads looks into resources, once for all proxies that share them.
type leads struct {
	mu    sync.Mutex
	known map[string]lead
	made  map[string]*resource.Resource
}

func newLeads() *leads {
	return &leads{known: map[string]lead{}, made: map[string]*resource.Resource{}}
}

// of says where a listener or routes lead; nowhere if that cannot be told.
func (l *leads) of(r *resource.Resource) lead {
	key := r.Body.GetTypeUrl() + " " + r.Name + " " + r.Version
	l.mu.Lock()
	defer l.mu.Unlock()
	found, seen := l.known[key]
	if !seen {
		found = look(r)
		if len(l.known) >= maxLeads {
			clear(l.known)
		}
		l.known[key] = found
	}
	return found
}

// with are the same routes, which introduce these clusters too.
func (l *leads) with(r *resource.Resource, guests []string) *resource.Resource {
	has := l.of(r)
	guests = slices.DeleteFunc(slices.Clone(guests), func(name string) bool { return slices.Contains(has.guests, name) })
	if len(guests) == 0 {
		return r
	}
	key := strings.Join(append([]string{r.Name, r.Version}, guests...), " ")
	l.mu.Lock()
	defer l.mu.Unlock()
	if made := l.made[key]; made != nil {
		return made
	}
	if len(l.made) >= maxLeads {
		clear(l.made)
	}
	l.made[key] = introduce(r, guests)
	return l.made[key]
}

func look(r *resource.Resource) lead {
	switch of, _ := resource.TypeOf(r.Body.GetTypeUrl()); of {
	case resource.Listener:
		var listener listenerv3.Listener
		var manager hcmv3.HttpConnectionManager
		if proto.Unmarshal(r.Body.GetValue(), &listener) == nil && listener.GetApiListener().GetApiListener().UnmarshalTo(&manager) == nil {
			return lead{routes: manager.GetRds().GetRouteConfigName()}
		}
	case resource.Route:
		var routes routev3.RouteConfiguration
		if proto.Unmarshal(r.Body.GetValue(), &routes) == nil {
			return leadOf(&routes)
		}
	}
	return lead{}
}

func leadOf(routes *routev3.RouteConfiguration) lead {
	var l lead
	for _, host := range routes.GetVirtualHosts() {
		for _, route := range host.GetRoutes() {
			to := &l.clusters
			if route.GetMatch().GetPath() == introduction {
				to = &l.guests
			}
			if cluster := route.GetRoute().GetCluster(); cluster != "" {
				*to = append(*to, cluster)
			}
			for _, share := range route.GetRoute().GetWeightedClusters().GetClusters() {
				*to = append(*to, share.GetName())
			}
		}
	}
	slices.Sort(l.clusters)
	slices.Sort(l.guests)
	l.clusters, l.guests = slices.Compact(l.clusters), slices.Compact(l.guests)
	return l
}

// introduce adds the routes that nobody takes. What cannot be changed stays as it is: its proxy is led without.
func introduce(r *resource.Resource, guests []string) *resource.Resource {
	var routes routev3.RouteConfiguration
	if r.Body.GetTypeUrl() != resource.Route.URL() || proto.Unmarshal(r.Body.GetValue(), &routes) != nil {
		return r
	}
	for _, host := range routes.GetVirtualHosts() {
		for _, cluster := range guests {
			host.Routes = append(host.Routes, &routev3.Route{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{Path: introduction}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
			})
		}
	}
	sealed, err := build.Seal(r.Name, &routes, nil)
	if err != nil {
		return r
	}
	return sealed
}
