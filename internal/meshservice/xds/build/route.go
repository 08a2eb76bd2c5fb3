package build

import (
	"slices"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Rule is the destination of some requests.
type Rule struct {
	// Hostnames restrict the rule, if there are any.
	Hostnames []string
	Match     kumav1alpha1.HTTPMatch
	// Clusters get the requests; without any, requests get status 500.
	Clusters []WeightedCluster
	Filters  []Filter
}

// Check returns why a proxy would reject the rule.
func (r Rule) Check() error {
	_, err := routeMatches(r.Match)
	return err
}

// Routes builds the route configuration of a destination: its rules in order, and its clusters for all other requests.
func Routes(name string, protocol model.Protocol, rules []Rule, shares []WeightedCluster, s Settings) (*routev3.RouteConfiguration, error) {
	config := &routev3.RouteConfiguration{Name: name}
	hosts := map[string]*routev3.VirtualHost{}
	for _, hostname := range append(hostnames(rules), "*") {
		host := &routev3.VirtualHost{Name: name, Domains: []string{hostname}}
		if hostname != "*" {
			host.Name += " " + hostname
		}
		hosts[hostname] = host
		config.VirtualHosts = append(config.VirtualHosts, host)
	}
	usual := Rule{Clusters: shares}
	for _, rule := range append(slices.Clip(rules), usual) {
		// Hosts share the routes.
		routes, err := rule.routes(protocol, s)
		if err != nil {
			return nil, err
		}
		of := config.VirtualHosts
		if len(rule.Hostnames) > 0 {
			of = nil
			for hostname := range sets.New(rule.Hostnames...) {
				of = append(of, hosts[hostname])
			}
		}
		for _, host := range of {
			host.Routes = append(host.Routes, routes...)
		}
	}
	return config, nil
}

func hostnames(rules []Rule) []string {
	all := sets.New[string]()
	for _, rule := range rules {
		all.Insert(rule.Hostnames...)
	}
	return sets.List(all.Delete("*"))
}

// routes returns one route for each path match.
func (r Rule) routes(protocol model.Protocol, s Settings) ([]*routev3.Route, error) {
	matches, err := routeMatches(r.Match)
	if err != nil {
		return nil, err
	}
	var list []*routev3.Route
	for _, match := range matches {
		route := &routev3.Route{Match: match}
		if shares := withWeight(r.Clusters); len(shares) > 0 {
			route.Action = &routev3.Route_Route{Route: action(shares, protocol, s)}
		} else {
			route.Action = &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 500}}
		}
		for _, filter := range r.Filters {
			filter.apply(route)
		}
		list = append(list, route)
	}
	return list, nil
}

// HasWeight says whether any cluster has a weight.
func HasWeight(shares []WeightedCluster) bool { return len(withWeight(shares)) > 0 }

// withWeight returns the clusters with a weight.
func withWeight(shares []WeightedCluster) []WeightedCluster {
	return slices.DeleteFunc(slices.Clone(shares), func(s WeightedCluster) bool { return s.Weight == 0 })
}

func matchAll() *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
}

func action(shares []WeightedCluster, protocol model.Protocol, s Settings) *routev3.RouteAction {
	http := s.httpTimeout()
	a := &routev3.RouteAction{
		Timeout:           duration(http.RequestTimeout),
		IdleTimeout:       duration(http.StreamIdleTimeout),
		MaxStreamDuration: maxStreamDuration(http.RequestTimeout, http.MaxStreamDuration),
		RetryPolicy:       retryPolicy(protocol, s.Retry),
		HashPolicy:        hashPolicies(s.LoadBalancing),
	}
	if len(shares) == 1 {
		a.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: shares[0].Name}
		return a
	}
	weighted := &routev3.WeightedCluster{}
	for _, share := range shares {
		weighted.Clusters = append(weighted.Clusters, &routev3.WeightedCluster_ClusterWeight{
			Name: share.Name, Weight: wrapperspb.UInt32(share.Weight),
		})
	}
	a.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted}
	return a
}

// maxStreamDuration is the shorter of both timeouts; zero is no timeout. Proxyless clients support no other request
// timeout.
func maxStreamDuration(request, stream *metav1.Duration) *routev3.RouteAction_MaxStreamDuration {
	var shortest time.Duration
	for _, d := range []*metav1.Duration{request, stream} {
		if d != nil && d.Duration > 0 && (shortest == 0 || d.Duration < shortest) {
			shortest = d.Duration
		}
	}
	if shortest == 0 {
		return nil
	}
	return &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: durationpb.New(shortest)}
}
