package server

import (
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/lru"

	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// prewarmPath is the path of a route that no request matches, since it stands after the catch-all route. It refers to a
// cluster, so that a proxyless client subscribes to it.
const prewarmPath = "/fairlead.dev/introduction"

// maxReferences bounds each cache.
const maxReferences = 4096

// references are what a listener or a route configuration refers to.
type references struct {
	// routeConfig is the route configuration of an API listener.
	routeConfig string
	// clusters are those of routes, prewarmClusters those of prewarm routes.
	clusters, prewarmClusters []string
}

// referenceCache parses resources once for all proxies that share them.
type referenceCache struct{ parsed, prewarming *lru.Cache }

func newReferenceCache() *referenceCache {
	return &referenceCache{parsed: lru.New(maxReferences), prewarming: lru.New(maxReferences)}
}

// of returns the references of a listener or a route configuration; none if it cannot be parsed.
func (l *referenceCache) of(r *resource.Resource) references {
	key := r.Body.GetTypeUrl() + " " + r.Name + " " + r.Version
	if known, found := l.parsed.Get(key); found {
		return known.(references)
	}
	parsed := parseReferences(r)
	l.parsed.Add(key, parsed)
	return parsed
}

// withPrewarmRoutes returns the route configuration with prewarm routes for these clusters.
func (l *referenceCache) withPrewarmRoutes(r *resource.Resource, clusters []string) *resource.Resource {
	has := l.of(r)
	clusters = slices.DeleteFunc(slices.Clone(clusters), func(name string) bool { return slices.Contains(has.prewarmClusters, name) })
	if len(clusters) == 0 {
		return r
	}
	key := strings.Join(append([]string{r.Name, r.Version}, clusters...), " ")
	if known, found := l.prewarming.Get(key); found {
		return known.(*resource.Resource)
	}
	extended := addPrewarmRoutes(r, clusters)
	l.prewarming.Add(key, extended)
	return extended
}

func parseReferences(r *resource.Resource) references {
	switch of, _ := resource.TypeOf(r.Body.GetTypeUrl()); of {
	case resource.Listener:
		var listener listenerv3.Listener
		var manager hcmv3.HttpConnectionManager
		if proto.Unmarshal(r.Body.GetValue(), &listener) == nil && listener.GetApiListener().GetApiListener().UnmarshalTo(&manager) == nil {
			return references{routeConfig: manager.GetRds().GetRouteConfigName()}
		}
	case resource.Route:
		var routes routev3.RouteConfiguration
		if proto.Unmarshal(r.Body.GetValue(), &routes) == nil {
			return routeReferences(&routes)
		}
	}
	return references{}
}

func routeReferences(routes *routev3.RouteConfiguration) references {
	var l references
	for _, host := range routes.GetVirtualHosts() {
		for _, route := range host.GetRoutes() {
			to := &l.clusters
			if route.GetMatch().GetPath() == prewarmPath {
				to = &l.prewarmClusters
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
	slices.Sort(l.prewarmClusters)
	l.clusters, l.prewarmClusters = slices.Compact(l.clusters), slices.Compact(l.prewarmClusters)
	return l
}

// addPrewarmRoutes adds the prewarm routes. A resource that cannot be parsed is returned unchanged.
func addPrewarmRoutes(r *resource.Resource, clusters []string) *resource.Resource {
	var routes routev3.RouteConfiguration
	if r.Body.GetTypeUrl() != resource.Route.URL() || proto.Unmarshal(r.Body.GetValue(), &routes) != nil {
		return r
	}
	for _, host := range routes.GetVirtualHosts() {
		for _, cluster := range clusters {
			host.Routes = append(host.Routes, &routev3.Route{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{Path: prewarmPath}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
			})
		}
	}
	extended, err := build.Marshal(r.Name, &routes, nil)
	if err != nil {
		return r
	}
	return extended
}
