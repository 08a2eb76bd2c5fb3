package build

import (
	"math"
	"strconv"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// setCircuitBreakers sets connection limits and outlier detection of a cluster.
func setCircuitBreakers(c *clusterv3.Cluster, conf *kumav1alpha1.MeshCircuitBreakerConf) {
	if conf == nil {
		return
	}
	if l := conf.ConnectionLimits; l != nil {
		c.CircuitBreakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			MaxConnections:     uint32Value(l.MaxConnections),
			MaxConnectionPools: uint32Value(l.MaxConnectionPools),
			MaxPendingRequests: uint32Value(l.MaxPendingRequests),
			MaxRequests:        uint32Value(l.MaxRequests),
			MaxRetries:         uint32Value(l.MaxRetries),
		}}}
	}
	if d := conf.OutlierDetection; d != nil && !ptr.Deref(d.Disabled, false) {
		c.OutlierDetection = outlierDetection(d)
	}
}

// outlierDetection enforces only the written detectors: Envoy enforces some by default.
func outlierDetection(d *kumav1alpha1.OutlierDetection) *clusterv3.OutlierDetection {
	o := &clusterv3.OutlierDetection{
		Interval:                               positiveDuration(d.Interval),
		BaseEjectionTime:                       positiveDuration(d.BaseEjectionTime),
		MaxEjectionPercent:                     uint32Value(d.MaxEjectionPercent),
		EnforcingConsecutive_5Xx:               wrapperspb.UInt32(0),
		EnforcingConsecutiveGatewayFailure:     wrapperspb.UInt32(0),
		EnforcingConsecutiveLocalOriginFailure: wrapperspb.UInt32(0),
		EnforcingSuccessRate:                   wrapperspb.UInt32(0),
		EnforcingFailurePercentage:             wrapperspb.UInt32(0),
		SplitExternalLocalOriginErrors:         ptr.Deref(d.SplitExternalAndLocalErrors, false),
	}
	if d.Detectors == nil {
		return o
	}
	enforced := func() *wrapperspb.UInt32Value { return wrapperspb.UInt32(100) }
	if f := d.Detectors.TotalFailures; f != nil {
		o.Consecutive_5Xx, o.EnforcingConsecutive_5Xx = uint32Value(f.Consecutive), enforced()
	}
	if f := d.Detectors.GatewayFailures; f != nil {
		o.ConsecutiveGatewayFailure, o.EnforcingConsecutiveGatewayFailure = uint32Value(f.Consecutive), enforced()
	}
	if f := d.Detectors.LocalOriginFailures; f != nil {
		o.ConsecutiveLocalOriginFailure, o.EnforcingConsecutiveLocalOriginFailure = uint32Value(f.Consecutive), enforced()
	}
	if r := d.Detectors.SuccessRate; r != nil {
		o.EnforcingSuccessRate = enforced()
		o.SuccessRateMinimumHosts, o.SuccessRateRequestVolume = uint32Value(r.MinimumHosts), uint32Value(r.RequestVolume)
		o.SuccessRateStdevFactor = thousandths(r.StandardDeviationFactor)
	}
	if p := d.Detectors.FailurePercentage; p != nil {
		o.EnforcingFailurePercentage = enforced()
		o.FailurePercentageMinimumHosts, o.FailurePercentageRequestVolume = uint32Value(p.MinimumHosts), uint32Value(p.RequestVolume)
		o.FailurePercentageThreshold = uint32Value(p.Threshold)
	}
	return o
}

// thousandths returns a number, written as a number or as text, in thousandths.
func thousandths(written *apiextensionsv1.JSON) *wrapperspb.UInt32Value {
	if written == nil {
		return nil
	}
	text := string(written.Raw)
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	factor, err := strconv.ParseFloat(text, 64)
	if err != nil || factor < 0 || factor > math.MaxUint32/1000 {
		return nil
	}
	return wrapperspb.UInt32(uint32(math.Round(factor * 1000)))
}
