package xds

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Routes lead to the destination's own cluster, whatever is asked for.
func Routes(name string, protocol model.Protocol, s Settings) *routev3.RouteConfiguration {
	return routes(name, []*routev3.Route{{
		Match:  everything(),
		Action: &routev3.Route_Route{Route: action([]Share{{Cluster: name, Weight: 1}}, protocol, s)},
	}})
}

func routes(name string, list []*routev3.Route) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name:         name,
		VirtualHosts: []*routev3.VirtualHost{{Name: name, Domains: []string{"*"}, Routes: list}},
	}
}

func everything() *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
}

func action(shares []Share, protocol model.Protocol, s Settings) *routev3.RouteAction {
	http := s.httpTimeout()
	a := &routev3.RouteAction{
		Timeout:           duration(http.RequestTimeout),
		IdleTimeout:       duration(http.StreamIdleTimeout),
		MaxStreamDuration: longest(http.RequestTimeout, http.MaxStreamDuration),
		RetryPolicy:       retries(protocol, s.Retry),
	}
	if len(shares) == 1 {
		a.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: shares[0].Cluster}
		return a
	}
	weighted := &routev3.WeightedCluster{}
	for _, share := range shares {
		weighted.Clusters = append(weighted.Clusters, &routev3.WeightedCluster_ClusterWeight{
			Name: share.Cluster, Weight: wrapperspb.UInt32(share.Weight),
		})
	}
	a.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted}
	return a
}

// longest is how long a stream may last. Clients without a proxy know no other timeout for a request, so that it counts here as
// well; what is shorter wins, and zero is for ever.
func longest(request, stream *metav1.Duration) *routev3.RouteAction_MaxStreamDuration {
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

// What policies call the reasons to try again, where it is not what proxies call them.
var retryReasons = map[string]string{
	"5xx": "5xx", "gatewayerror": "gateway-error", "reset": "reset", "retriable4xx": "retriable-4xx",
	"connectfailure": "connect-failure", "envoyratelimited": "envoy-ratelimited", "refusedstream": "refused-stream",
	"http3postconnectfailure": "http3-post-connect-failure",
	"canceled":                "cancelled", "cancelled": "cancelled", "deadlineexceeded": "deadline-exceeded", "internal": "internal",
	"resourceexhausted": "resource-exhausted", "unavailable": "unavailable",
}

func retries(protocol model.Protocol, conf *kumav1alpha1.MeshRetryConf) *routev3.RetryPolicy {
	if conf == nil {
		return nil
	}
	if protocol == model.GRPC && conf.GRPC != nil {
		g := conf.GRPC
		return retry(g.NumRetries, g.PerTryTimeout, g.BackOff, g.RetryOn, "cancelled,connect-failure,gateway-error,refused-stream,reset,resource-exhausted,unavailable")
	}
	if protocol.HasRequests() && conf.HTTP != nil {
		h := conf.HTTP
		return retry(h.NumRetries, h.PerTryTimeout, h.BackOff, h.RetryOn, "gateway-error,connect-failure,refused-stream")
	}
	return nil
}

func retry(times *int32, each *metav1.Duration, wait *kumav1alpha1.BackOff, on []string, usual string) *routev3.RetryPolicy {
	n := number(times)
	if n != nil && n.Value == 0 {
		return nil
	}
	p := &routev3.RetryPolicy{NumRetries: n, PerTryTimeout: some(each), RetryOn: usual}
	if wait != nil && some(wait.BaseInterval) != nil {
		p.RetryBackOff = &routev3.RetryPolicy_RetryBackOff{BaseInterval: some(wait.BaseInterval), MaxInterval: some(wait.MaxInterval)}
	}
	if len(on) > 0 {
		p.RetryOn, p.RetriableStatusCodes = reasons(on)
	}
	return p
}

// reasons to try again, and the status codes that are some.
func reasons(written []string) (string, []uint32) {
	var names []string
	var codes []uint32
	for _, w := range written {
		if code, err := strconv.ParseUint(w, 10, 16); err == nil {
			codes = append(codes, uint32(code))
			continue
		}
		if method, found := strings.CutPrefix(w, "HttpMethod"); found {
			w = method
		}
		names = append(names, cmp.Or(retryReasons[strings.ToLower(w)], strings.ToLower(w)))
	}
	if len(codes) > 0 {
		names = append(names, "retriable-status-codes")
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ","), codes
}
