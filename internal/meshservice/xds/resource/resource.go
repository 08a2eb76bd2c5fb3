// Package resource holds Envoy resources, which are immutable and shared by proxies.
package resource

import (
	"cmp"
	"encoding/hex"
	"hash/fnv"
	"slices"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/anypb"
)

// Type is a type of resource.
type Type int

// The types, in the order in which a proxy has to receive them.
const (
	Cluster Type = iota
	Endpoint
	Listener
	Route
	types
)

var urls = [types]string{
	"type.googleapis.com/envoy.config.cluster.v3.Cluster",
	"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
	"type.googleapis.com/envoy.config.listener.v3.Listener",
	"type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
}

// Types returns all types in order.
func Types() []Type { return []Type{Cluster, Endpoint, Listener, Route} }

// URL is the type URL.
func (t Type) URL() string { return urls[t] }

// TypeOf returns the type of a type URL.
func TypeOf(url string) (Type, bool) {
	i := slices.Index(urls[:], url)
	return Type(i), i >= 0
}

// Resource is an Envoy resource, built once and sent to many proxies.
type Resource struct {
	Name string
	// Version is a digest of the body.
	Version string
	Body    *anypb.Any
	// encoded is the resource on the wire. All streams send this memory.
	encoded, label mem.Buffer
}

// Config is the configuration of one proxy. Its resources are sorted by name.
type Config struct {
	resources [types][]*Resource
	versions  [types]string
}

// NewConfig returns a configuration of these resources, which are sorted in place.
func NewConfig(resources map[Type][]*Resource) *Config {
	c := &Config{}
	for t, list := range resources {
		slices.SortFunc(list, func(a, b *Resource) int { return cmp.Compare(a.Name, b.Name) })
		c.resources[t] = list
	}
	for t, list := range c.resources {
		c.versions[t] = Digest(list)
	}
	return c
}

// With returns a copy with other resources of a type, sorted by name.
func (c *Config) With(t Type, resources []*Resource) *Config {
	other := *c
	other.resources[t], other.versions[t] = resources, Digest(resources)
	return &other
}

// Digest is the version of a list of resources.
func Digest(list []*Resource) string {
	h := fnv.New128a()
	for _, r := range list {
		h.Write([]byte(r.Name))
		h.Write([]byte{0})
		h.Write([]byte(r.Version))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Of returns the resources of a type, sorted by name; not to be changed.
func (c *Config) Of(t Type) []*Resource { return c.resources[t] }

// Version is a digest of all resources of a type.
func (c *Config) Version(t Type) string { return c.versions[t] }

// Find returns the resource of that name, or nil.
func (c *Config) Find(t Type, name string) *Resource { return Find(c.resources[t], name) }

// Find returns the resource of that name in a sorted list, or nil.
func Find(list []*Resource, name string) *Resource {
	i, found := slices.BinarySearchFunc(list, name, func(r *Resource, name string) int { return cmp.Compare(r.Name, name) })
	if !found {
		return nil
	}
	return list[i]
}

// Equal says whether two configurations have the same versions.
func (c *Config) Equal(other *Config) bool { return other != nil && c.versions == other.versions }
