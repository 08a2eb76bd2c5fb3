package snapshot

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
)

// dialAddress is where a destination is called: at an IP address, or by the hostname that a proxyless client dials.
type dialAddress struct {
	// name is the name of the listener.
	name string
	host string
	port uint32
	// api says that host is a hostname, and bound that the proxy binds to the port.
	api, bound bool
}

func ipAddress(address string, port uint32) dialAddress {
	return dialAddress{name: build.ListenerAddress{Address: address, Port: port}.Name(), host: address, port: port}
}

func (a dialAddress) listenerAddress() build.ListenerAddress {
	return build.ListenerAddress{Address: a.host, Port: a.port, Bind: a.bound}
}

func hostAddress(hostname string, port uint32) dialAddress {
	return dialAddress{name: build.APIListenerName(hostname, port), host: hostname, port: port, api: true}
}

const (
	// tagPort is the port of the hostname of a tag.
	tagPort = 80
	// clusterDomain is the suffix of the hostnames of Services.
	clusterDomain = ".svc.cluster.local"
)

func tagHost(tag string) string { return tag + ".mesh" }

func serviceHost(name, namespace string) string { return name + "." + namespace + clusterDomain }

// tagAddresses are the VIP and hostname of a tag; on Kubernetes, with a local instance, also those of its Service.
func (m *mesh) tagAddresses(tag string, local bool) []dialAddress {
	addresses := []dialAddress{hostAddress(tagHost(tag), tagPort)}
	if vip := m.vips[tag]; isIP(vip) {
		addresses = append(addresses, ipAddress(vip, tagPort))
	}
	if m.state.zone.IsUniversal() || !local {
		return addresses
	}
	name, namespace, port, ok := model.ParseKubernetesTag(tag)
	if !ok {
		return addresses
	}
	s := m.state.services[types.NamespacedName{Namespace: namespace, Name: name}]
	if s == nil || !slices.Contains(s.ports, port) {
		return addresses
	}
	addresses = append(addresses, hostAddress(serviceHost(name, namespace), port))
	for _, ip := range s.ips {
		addresses = append(addresses, ipAddress(ip, port))
	}
	return addresses
}

// serviceAddresses are the addresses and hostnames of a port of a resource. A local MeshService also has those of its
// Service and the hostname of its tag, so that a client keeps its target when it is switched.
func (m *mesh) serviceAddresses(c *serviceResource, port uint32) []dialAddress {
	own := types.NamespacedName{Namespace: c.id.Namespace, Name: c.id.Name}
	local := c.kind == model.MeshService && c.id.Local
	kubernetes := local && !m.state.zone.IsUniversal()

	var addresses []dialAddress
	for _, ip := range c.vips {
		// The ClusterIP of another Service is not used.
		if owners := m.state.owners[ip]; isIP(ip) && (len(owners) == 0 || kubernetes && owners.Has(own)) {
			addresses = append(addresses, ipAddress(ip, port))
		}
	}
	for _, hostname := range c.hostnames {
		if !strings.HasSuffix(hostname, clusterDomain) || kubernetes && hostname == serviceHost(own.Name, own.Namespace) {
			addresses = append(addresses, hostAddress(hostname, port))
		}
	}
	if kubernetes {
		addresses = append(addresses, hostAddress(serviceHost(own.Name, own.Namespace), port))
		if s := m.state.services[own]; s != nil && slices.Contains(s.ports, port) {
			for _, ip := range s.ips {
				addresses = append(addresses, ipAddress(ip, port))
			}
		}
		addresses = append(addresses, hostAddress(tagHost(model.KubernetesTag(own.Name, own.Namespace, port)), tagPort))
	} else if local && port == portOfTag(c) {
		addresses = append(addresses, hostAddress(tagHost(own.Name), tagPort))
	}
	slices.SortFunc(addresses, func(a, b dialAddress) int { return strings.Compare(a.name, b.name) })
	return slices.Compact(addresses)
}

// portOfTag is the port of a universal MeshService that replaces its tag: port 80, or else the lowest.
func portOfTag(c *serviceResource) uint32 {
	var first uint32
	for _, p := range c.ports {
		number := uint32(p.Port)
		if number == tagPort {
			return number
		}
		if first == 0 || number < first {
			first = number
		}
	}
	return first
}

// hasPrecedence says which destination gets an address that both have: MeshServices before tags. Consumers that do not
// reach the MeshService only have the tag.
func hasPrecedence(a, b model.Key) bool {
	if a.Kind == b.Kind {
		return compareKeys(a, b) < 0
	}
	return precedence(a.Kind) < precedence(b.Kind)
}

func precedence(kind model.Kind) int {
	return slices.Index([]model.Kind{model.MeshService, model.MeshMultiZoneService, model.Tag}, kind)
}
