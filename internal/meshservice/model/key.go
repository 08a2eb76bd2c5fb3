// Package model holds the values that the packages of the passage share: destinations, proxies and their reach.
package model

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the kind of a destination.
type Kind string

// The kinds of destinations: the value of a kuma.io/service tag, and a port of one of the two resources.
const (
	Tag                  Kind = "kuma.io/service"
	MeshService          Kind = "MeshService"
	MeshMultiZoneService Kind = "MeshMultiZoneService"
)

// Key identifies a destination, and can be parsed from the name of its cluster.
type Key struct {
	Kind Kind
	// Name is the value of a tag, or the display name of a resource.
	Name string
	// Namespace, Zone, Mesh and Port are those of a resource's port. They are empty for a tag; the namespace is also in
	// universal, and the zone of a MeshMultiZoneService.
	Namespace, Zone, Mesh string
	Port                  uint32
}

// TagKey is the key of a tag's value.
func TagKey(service string) Key { return Key{Kind: Tag, Name: service} }

// infixes mark the kind in the name of a cluster.
var infixes = map[Kind]string{MeshService: "msvc", MeshMultiZoneService: "mzsvc"}

// Cluster is the name of the destination's cluster, which is also its name in stats.
func (k Key) Cluster() string {
	if k.Kind == Tag {
		return k.Name
	}
	return fmt.Sprintf("%s_%s_%s_%s_%s_%d", k.Name, k.Namespace, k.Zone, k.Mesh, infixes[k.Kind], k.Port)
}

// String describes the destination.
func (k Key) String() string {
	if k.Kind == Tag {
		return string(Tag) + " " + k.Name
	}
	name := k.Name
	if k.Namespace != "" {
		name = k.Namespace + "/" + name
	}
	if k.Zone != "" {
		name += " of zone " + k.Zone
	}
	return fmt.Sprintf("%s %s port %d", k.Kind, name, k.Port)
}

// ParseCluster returns the key of a cluster by its name. A name of another form is that of a tag.
func ParseCluster(cluster string) Key {
	parts := strings.Split(cluster, "_")
	if len(parts) != 6 {
		return TagKey(cluster)
	}
	port, err := strconv.ParseUint(parts[5], 10, 16)
	if err != nil || port == 0 || strconv.FormatUint(port, 10) != parts[5] {
		return TagKey(cluster)
	}
	for kind, infix := range infixes {
		if parts[4] == infix {
			return Key{Kind: kind, Name: parts[0], Namespace: parts[1], Zone: parts[2], Mesh: parts[3], Port: uint32(port)}
		}
	}
	return TagKey(cluster)
}

// KubernetesTag is the value of the tag kuma.io/service that a port of a Service has.
func KubernetesTag(name, namespace string, port uint32) string {
	return fmt.Sprintf("%s_%s_svc_%d", name, namespace, port)
}

// ParseKubernetesTag parses such a value.
func ParseKubernetesTag(tag string) (name, namespace string, port uint32, ok bool) {
	parts := strings.Split(tag, "_")
	if len(parts) != 4 || parts[0] == "" || parts[1] == "" || parts[2] != "svc" {
		return "", "", 0, false
	}
	number, err := strconv.ParseUint(parts[3], 10, 16)
	if err != nil || number == 0 {
		return "", "", 0, false
	}
	return parts[0], parts[1], uint32(number), true
}

// NamespaceOfTag is the namespace that owns the value of a tag kuma.io/service, by its form: NAME_NAMESPACE_svc_PORT, or
// NAME_NAMESPACE_svc of pods without a Service. It is empty for any other value.
func NamespaceOfTag(tag string) string {
	if _, namespace, _, ok := ParseKubernetesTag(tag); ok {
		return namespace
	}
	if parts := strings.Split(tag, "_"); len(parts) == 3 && parts[0] != "" && parts[2] == "svc" {
		return parts[1]
	}
	return ""
}

// NamesTag says whether the name in a reference to a MeshService, without section and port, is the value of a tag. With a
// namespace it is the name of an object, unless no object can have it.
func NamesTag(name string, namespaced bool) bool {
	_, _, _, kubernetes := ParseKubernetesTag(name)
	return kubernetes || name != "" && !namespaced
}
