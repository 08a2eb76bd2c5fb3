package model

import (
	"fmt"
	"strings"
	"time"
)

// ProxyID names a proxy: the Dataplane that stands for it, and its mesh.
type ProxyID struct {
	Mesh, Namespace, Name string
}

// String is the id that a proxy gives as that of its node: mesh.name.namespace, and mesh.name in universal. A mesh's name has
// no dot, a namespace has none either.
func (p ProxyID) String() string {
	if p.Namespace == "" {
		return p.Mesh + "." + p.Name
	}
	return p.Mesh + "." + p.Name + "." + p.Namespace
}

// ParseProxyID takes a node's id apart; namespaced says whether it ends in a namespace.
func ParseProxyID(id string, namespaced bool) (ProxyID, error) {
	mesh, rest, found := strings.Cut(id, ".")
	if !found || mesh == "" || rest == "" {
		return ProxyID{}, fmt.Errorf("node id %q is not MESH.NAME.NAMESPACE: set the node id in the proxy's bootstrap", id)
	}
	if !namespaced {
		return ProxyID{Mesh: mesh, Name: rest}, nil
	}
	dot := strings.LastIndexByte(rest, '.')
	if dot <= 0 || dot == len(rest)-1 {
		return ProxyID{}, fmt.Errorf("node id %q is not MESH.NAME.NAMESPACE: set the node id in the proxy's bootstrap", id)
	}
	return ProxyID{Mesh: mesh, Name: rest[:dot], Namespace: rest[dot+1:]}, nil
}

// Proxy is one that calls.
type Proxy struct {
	ID ProxyID
	// Labels are those of its Dataplane.
	Labels map[string]string
	// Inbounds are the tags of each of its inbounds.
	Inbounds []map[string]string
	Reach    Reach
	// Consumer is the workload that it belongs to, as namespace/Kind/name; in universal its own name.
	Consumer string
}

// Connection is how a proxy stands with the configuration that it should have.
type Connection struct {
	Connected bool
	// Since is when the stream was opened.
	Since time.Time
	// Current says that the proxy has acknowledged all that it asked for of what it should have now, listeners among it.
	Current bool
	// NACK is the proxy's word against what it should have now; empty if there is none. A refusal of something older
	// does not count.
	NACK string
}
