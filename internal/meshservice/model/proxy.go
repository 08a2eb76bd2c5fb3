package model

import (
	"fmt"
	"strings"
	"time"
)

// ProxyID identifies a proxy by its Dataplane and mesh.
type ProxyID struct {
	Mesh, Namespace, Name string
}

// String is the node id: mesh.name.namespace, and mesh.name in universal. Neither a mesh nor a namespace has a dot.
func (p ProxyID) String() string {
	if p.Namespace == "" {
		return p.Mesh + "." + p.Name
	}
	return p.Mesh + "." + p.Name + "." + p.Namespace
}

// ParseProxyID parses a node id; namespaced says whether it ends in a namespace.
func ParseProxyID(id string, namespaced bool) (ProxyID, error) {
	parsed := ProxyID{}
	parsed.Mesh, parsed.Name, _ = strings.Cut(id, ".")
	if namespaced {
		dot := max(strings.LastIndexByte(parsed.Name, '.'), 0)
		parsed.Name, parsed.Namespace = parsed.Name[:dot], strings.TrimPrefix(parsed.Name[dot:], ".")
	}
	if parsed.Mesh == "" || parsed.Name == "" || namespaced && parsed.Namespace == "" {
		return ProxyID{}, fmt.Errorf("node id %q is not MESH.NAME.NAMESPACE: set the node id in the proxy's bootstrap", id)
	}
	return parsed, nil
}

// Proxy is a proxy as a client.
type Proxy struct {
	ID ProxyID
	// Labels are those of its Dataplane.
	Labels map[string]string
	// Inbounds are the tags of each of its inbounds.
	Inbounds []map[string]string
	Reach    Reach
	// Consumer is its workload as namespace/Kind/name; in universal its name.
	Consumer string
}

// Connection is the xDS state of a proxy.
type Connection struct {
	Connected bool
	// Since is when the stream was opened.
	Since time.Time
	// Current says that the proxy has acknowledged all subscribed resources of its current configuration, listeners among
	// them.
	Current bool
	// Switched says that Current and NACK are about a configuration with the consumer switched. A connection to this process does
	// not say so: it is about the published configuration.
	Switched bool
	// NACK is the error of the proxy about its current configuration, if any.
	NACK string
}
