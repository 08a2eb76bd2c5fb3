package build

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// Settings are the policies of a destination; nil is Envoy's default.
type Settings struct {
	Timeout        *kumav1alpha1.MeshTimeoutConf
	Retry          *kumav1alpha1.MeshRetryConf
	CircuitBreaker *kumav1alpha1.MeshCircuitBreakerConf
	LoadBalancing  *kumav1alpha1.MeshLoadBalancingStrategyConf
}

// connectTimeout is the connection timeout without a policy.
const connectTimeout = 5 * time.Second

func (s Settings) timeout() kumav1alpha1.MeshTimeoutConf {
	if s.Timeout == nil {
		return kumav1alpha1.MeshTimeoutConf{}
	}
	return *s.Timeout
}

func (s Settings) httpTimeout() kumav1alpha1.HTTPTimeouts {
	if http := s.timeout().HTTP; http != nil {
		return *http
	}
	return kumav1alpha1.HTTPTimeouts{}
}

func duration(d *metav1.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(d.Duration)
}

// positiveDuration returns nil for zero, which is no timeout and Envoy's default.
func positiveDuration(d *metav1.Duration) *durationpb.Duration {
	if d == nil || d.Duration <= 0 {
		return nil
	}
	return durationpb.New(d.Duration)
}

func uint32Value(n *int32) *wrapperspb.UInt32Value {
	if n == nil || *n < 0 {
		return nil
	}
	return wrapperspb.UInt32(uint32(*n))
}
