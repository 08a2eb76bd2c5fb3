// Package resource holds what is sent to proxies, in pieces that never change and that all of them share.
package resource

import (
	"cmp"
	"encoding/hex"
	"hash/fnv"
	"slices"

	"google.golang.org/protobuf/types/known/anypb"
)

// Type is a type of resource.
type Type int

// The types, in the order in which a proxy must learn of them.
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

// Types are all of them, in order.
func Types() []Type { return []Type{Cluster, Endpoint, Listener, Route} }

// URL is the name of the type on the wire.
func (t Type) URL() string { return urls[t] }

// TypeOf is the type of a name on the wire.
func TypeOf(url string) (Type, bool) {
	i := slices.Index(urls[:], url)
	return Type(i), i >= 0
}

// Resource is one of them, made once and sent to many.
type Resource struct {
	Name string
	// Version is a digest of the body.
	Version string
	Body    *anypb.Any
}

// Config is all that one proxy is sent. Its resources are sorted by name.
type Config struct {
	resources [types][]*Resource
	versions  [types]string
}

// NewConfig holds these resources, by type. They are sorted in place.
func NewConfig(resources map[Type][]*Resource) *Config {
	c := &Config{}
	for t, list := range resources {
		slices.SortFunc(list, func(a, b *Resource) int { return cmp.Compare(a.Name, b.Name) })
		c.resources[t] = list
	}
	for t, list := range c.resources {
		c.versions[t] = digest(list)
	}
	return c
}

// With is another that holds these resources of a type, sorted by name, instead.
func (c *Config) With(t Type, resources []*Resource) *Config {
	other := *c
	other.resources[t], other.versions[t] = resources, digest(resources)
	return &other
}

func digest(list []*Resource) string {
	h := fnv.New128a()
	for _, r := range list {
		h.Write([]byte(r.Name))
		h.Write([]byte{0})
		h.Write([]byte(r.Version))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Of are the resources of a type, sorted by name; not to be changed.
func (c *Config) Of(t Type) []*Resource { return c.resources[t] }

// Version is a digest of all resources of a type.
func (c *Config) Version(t Type) string { return c.versions[t] }

// Find is the resource of that name, or nil.
func (c *Config) Find(t Type, name string) *Resource {
	i, found := slices.BinarySearchFunc(c.resources[t], name, func(r *Resource, name string) int { return cmp.Compare(r.Name, name) })
	if !found {
		return nil
	}
	return c.resources[t][i]
}

// Equal says whether two hold the same.
func (c *Config) Equal(other *Config) bool { return other != nil && c.versions == other.versions }
