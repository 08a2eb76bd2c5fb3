// Package build builds Envoy resources: clusters, endpoints, listeners and routes.
package build

import (
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// Message is a resource that knows whether it is valid.
type Message interface {
	proto.Message
	Validate() error
}

// Marshal validates a message and makes a resource of it.
func Marshal(name string, m Message, err error) (*resource.Resource, error) {
	if err == nil {
		err = m.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not valid: %w", name, err)
	}
	r, err := resource.Marshal(name, m)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return r, nil
}

func pack(m proto.Message) (*anypb.Any, error) {
	body := &anypb.Any{}
	return body, anypb.MarshalFrom(body, m, proto.MarshalOptions{Deterministic: true})
}

// extension packs a typed extension, which the validation of the whole resource skips.
func extension(m Message) (*anypb.Any, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return pack(m)
}

// ads is the same in all resources.
var ads = &corev3.ConfigSource{
	ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	ResourceApiVersion:    corev3.ApiVersion_V3,
}

func socket(address string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       address,
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

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
	return ptr.Deref(s.Timeout, kumav1alpha1.MeshTimeoutConf{})
}

func (s Settings) httpTimeout() kumav1alpha1.HTTPTimeouts {
	return ptr.Deref(s.timeout().HTTP, kumav1alpha1.HTTPTimeouts{})
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
