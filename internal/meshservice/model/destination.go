package model

import (
	"maps"
	"strconv"
	"strings"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// Protocol is the protocol of a destination.
type Protocol string

// The protocols. Any other is treated as TCP.
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

// HasRequests says whether the protocol has requests, which can be routed, retried and timed out.
func (p Protocol) HasRequests() bool { return p != TCP }

// Destination is a port that consumers call.
type Destination struct {
	Target
	// Section is the name of the port, empty for a tag.
	Section  string
	Protocol Protocol
	// Local says that all endpoints are in this zone.
	Local bool
}

// SectionText is a sectionName as YAML: in quotes where it would be a number or a boolean otherwise.
func SectionText(section string) string {
	switch _, err := strconv.Atoi(section); {
	case err == nil, strings.Contains(" y n yes no on off true false null ", " "+strings.ToLower(section)+" "):
		return "sectionName: " + strconv.Quote(section)
	}
	return "sectionName: " + section
}

// Endpoint is an instance, or the ingress of another zone.
type Endpoint struct {
	Address string
	Port    uint32
	Zone    string
	// Weight is the number of instances behind an ingress; zero is one.
	Weight uint32
	// Tags are the instance's own; nil for an ingress.
	Tags map[string]string
	// Ready says that it can be called.
	Ready bool
}

// ForHeadless returns the destination of the headless Service that the pod belongs to.
func (d Destination) ForHeadless(service string) Destination {
	d.Key.Name, d.Name = service, service
	d.Labels = maps.Clone(d.Labels)
	d.Labels[kumav1alpha1.LabelDisplayName] = service
	return d
}
