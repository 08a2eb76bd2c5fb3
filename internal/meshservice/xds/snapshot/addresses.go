package snapshot

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
)

const (
	// tagPort is the port of the hostname of a tag.
	tagPort = 80
	// clusterDomain is the suffix of the hostnames of Services.
	clusterDomain = ".svc.cluster.local"
)

func tagHost(tag string) string { return tag + ".mesh" }

func serviceHost(name, namespace string) string { return name + "." + namespace + clusterDomain }

// tagAddresses are the VIP and hostname of a tag; on Kubernetes, with a local instance, also those of its Service.
func (m *mesh) tagAddresses(tag string, local bool) []build.Address {
	addresses := []build.Address{build.HostAddress(tagHost(tag), tagPort)}
	if vip := m.vips[tag]; isIP(vip) {
		addresses = append(addresses, build.IPAddress(vip, tagPort))
	}
	name, namespace, port, _ := model.ParseKubernetesTag(tag)
	s := m.state.services[types.NamespacedName{Namespace: namespace, Name: name}]
	if m.state.zone.IsUniversal() || !local || s == nil || !slices.Contains(s.ports, port) {
		return addresses
	}
	addresses = append(addresses, build.HostAddress(serviceHost(name, namespace), port))
	for _, ip := range s.ips {
		addresses = append(addresses, build.IPAddress(ip, port))
	}
	return addresses
}

// serviceAddresses are the addresses and hostnames of a port of a resource. A local MeshService also has those of its
// Service and the hostname of its tag, so that a client keeps its target when it is switched.
func (m *mesh) serviceAddresses(c *serviceResource, port uint32) []build.Address {
	own := types.NamespacedName{Namespace: c.id.Namespace, Name: c.id.Name}
	local := c.kind == model.MeshService && c.id.Local
	kubernetes := local && !m.state.zone.IsUniversal()

	var addresses []build.Address
	for _, ip := range c.vips {
		// The ClusterIP of another Service is not used.
		if owners := m.state.owners[ip]; isIP(ip) && (len(owners) == 0 || kubernetes && owners.Has(own)) {
			addresses = append(addresses, build.IPAddress(ip, port))
		}
	}
	for _, hostname := range c.hostnames {
		if !strings.HasSuffix(hostname, clusterDomain) || kubernetes && hostname == serviceHost(own.Name, own.Namespace) {
			addresses = append(addresses, build.HostAddress(hostname, port))
		}
	}
	if kubernetes {
		addresses = append(addresses, build.HostAddress(serviceHost(own.Name, own.Namespace), port))
		if s := m.state.services[own]; s != nil && slices.Contains(s.ports, port) {
			for _, ip := range s.ips {
				addresses = append(addresses, build.IPAddress(ip, port))
			}
		}
		addresses = append(addresses, build.HostAddress(tagHost(model.KubernetesTag(own.Name, own.Namespace, port)), tagPort))
	} else if local && port == portOfTag(c) {
		addresses = append(addresses, build.HostAddress(tagHost(own.Name), tagPort))
	}
	slices.SortFunc(addresses, func(a, b build.Address) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(addresses)
}

// portOfTag is the port of a universal MeshService that replaces its tag: port 80, or else the lowest.
func portOfTag(c *serviceResource) uint32 {
	return uint32(slices.MinFunc(c.ports, func(a, b kumav1alpha1.Port) int {
		return cmp.Or(trueFirst(a.Port == tagPort, b.Port == tagPort), cmp.Compare(a.Port, b.Port))
	}).Port)
}

// hasPrecedence says which destination gets an address that both have: MeshServices before tags. Consumers that do not
// reach the MeshService only have the tag.
func hasPrecedence(a, b model.Key) bool {
	order := []model.Kind{model.MeshService, model.MeshMultiZoneService, model.Tag}
	return cmp.Or(cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)), compareKeys(a, b)) < 0
}
