// Package build builds Envoy resources: clusters, endpoints, listeners and routes.
package build

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// Message is a resource that knows whether it is valid.
type Message interface {
	proto.Message
	Validate() error
}

// Marshal validates a message and makes a resource of it, with the same bytes for the same content.
func Marshal(name string, m Message, err error) (*resource.Resource, error) {
	if err == nil {
		err = m.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not valid: %w", name, err)
	}
	body, err := pack(m)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	digest := fnv.New128a()
	digest.Write(body.Value)
	return &resource.Resource{Name: name, Version: hex.EncodeToString(digest.Sum(nil)), Body: body}, nil
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

func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}
}

func socket(address string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       address,
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}
