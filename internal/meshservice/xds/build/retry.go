package build

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// retryReasons are Envoy's retry conditions, by their names in policies.
var retryReasons = map[string]string{
	"5xx": "5xx", "gatewayerror": "gateway-error", "reset": "reset", "retriable4xx": "retriable-4xx",
	"connectfailure": "connect-failure", "envoyratelimited": "envoy-ratelimited", "refusedstream": "refused-stream",
	"http3postconnectfailure": "http3-post-connect-failure",
	"canceled":                "cancelled", "cancelled": "cancelled", "deadlineexceeded": "deadline-exceeded", "internal": "internal",
	"resourceexhausted": "resource-exhausted", "unavailable": "unavailable",
}

func retryPolicy(protocol model.Protocol, conf *kumav1alpha1.MeshRetryConf) *routev3.RetryPolicy {
	if conf == nil {
		return nil
	}
	if protocol == model.GRPC && conf.GRPC != nil {
		g := conf.GRPC
		return newRetryPolicy(g.NumRetries, g.PerTryTimeout, g.BackOff, g.RetryOn, "cancelled,connect-failure,gateway-error,refused-stream,reset,resource-exhausted,unavailable")
	}
	if protocol.HasRequests() && conf.HTTP != nil {
		h := conf.HTTP
		return newRetryPolicy(h.NumRetries, h.PerTryTimeout, h.BackOff, h.RetryOn, "gateway-error,connect-failure,refused-stream")
	}
	return nil
}

func newRetryPolicy(times *int32, each *metav1.Duration, wait *kumav1alpha1.BackOff, on []string, usual string) *routev3.RetryPolicy {
	n := uint32Value(times)
	if n != nil && n.Value == 0 {
		return nil
	}
	p := &routev3.RetryPolicy{NumRetries: n, PerTryTimeout: positiveDuration(each), RetryOn: usual}
	if wait != nil && positiveDuration(wait.BaseInterval) != nil {
		p.RetryBackOff = &routev3.RetryPolicy_RetryBackOff{BaseInterval: positiveDuration(wait.BaseInterval)}
		// Envoy rejects a maximum below the base interval.
		if wait.MaxInterval != nil && wait.MaxInterval.Duration >= wait.BaseInterval.Duration {
			p.RetryBackOff.MaxInterval = positiveDuration(wait.MaxInterval)
		}
	}
	if len(on) > 0 {
		var methods []string
		p.RetryOn, p.RetriableStatusCodes, methods = parseRetryOn(on)
		for _, method := range methods {
			p.RetriableRequestHeaders = append(p.RetriableRequestHeaders, header(":method", exactMatcher(method)))
		}
	}
	return p
}

// parseRetryOn splits retryOn into Envoy's conditions, status codes and methods.
func parseRetryOn(written []string) (on string, codes []uint32, methods []string) {
	var names []string
	for _, w := range written {
		if code, err := strconv.ParseUint(w, 10, 16); err == nil {
			codes = append(codes, uint32(code))
			continue
		}
		if method, found := strings.CutPrefix(w, "HttpMethod"); found {
			methods = append(methods, strings.ToUpper(method))
			continue
		}
		names = append(names, cmp.Or(retryReasons[strings.ToLower(w)], strings.ToLower(w)))
	}
	if len(codes) > 0 {
		names = append(names, "retriable-status-codes")
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ","), codes, methods
}
