package model

import (
	"maps"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// Protocol is what is spoken with a destination.
type Protocol string

// The protocols. What is none of them is taken for TCP.
const (
	TCP   Protocol = "tcp"
	HTTP  Protocol = "http"
	HTTP2 Protocol = "http2"
	GRPC  Protocol = "grpc"
)

// ProtocolOf reads a protocol as users write it.
func ProtocolOf(written string) Protocol {
	switch p := Protocol(written); p {
	case HTTP, HTTP2, GRPC:
		return p
	default:
		return TCP
	}
}

// HasRequests says whether requests are told apart, so that they can be routed, retried and timed out one by one.
func (p Protocol) HasRequests() bool { return p != TCP }

// Destination is a port that consumers call.
type Destination struct {
	Target
	// Section is the name of the port, empty for a tag.
	Section  string
	Protocol Protocol
	// Local says that its endpoints are in this zone: what a tag's or a MultiZone's is only in part.
	Local bool
}

// Endpoint is an instance, or another zone's ingress that leads to some.
type Endpoint struct {
	Address string
	Port    uint32
	Zone    string
	// Weight is how many instances are behind it; zero is one.
	Weight uint32
	// Tags are the instance's own; nil for an ingress.
	Tags map[string]string
	// Ready says that it can be called.
	Ready bool
}

// ForHeadless is the port of the headless Service of that name, of which the destination is one pod.
func (d Destination) ForHeadless(service string) Destination {
	d.Key.Name, d.Name = service, service
	d.Labels = maps.Clone(d.Labels)
	d.Labels[kumav1alpha1.LabelDisplayName] = service
	return d
}
