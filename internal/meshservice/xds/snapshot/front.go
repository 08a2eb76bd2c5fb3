package snapshot

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
)

// front is where a destination is called: at an address, or by a name that a client without a proxy dials.
type front struct {
	// name is that of the listener.
	name string
	host string
	port uint32
	// api says that host is a name, and bound that the proxy itself listens there.
	api, bound bool
}

func at(address string, port uint32) front {
	return front{name: build.Place{Address: address, Port: port}.Name(), host: address, port: port}
}

func (f front) place() build.Place { return build.Place{Address: f.host, Port: f.port, Bound: f.bound} }

func named(hostname string, port uint32) front {
	return front{name: build.APIName(hostname, port), host: hostname, port: port, api: true}
}

const (
	// The port at which a tag is called by its own name.
	tagPort = 80
	// What the names of Services end in.
	clusterDomain = ".svc.cluster.local"
)

func tagHost(tag string) string { return tag + ".mesh" }

func serviceHost(name, namespace string) string { return name + "." + namespace + clusterDomain }

// frontsOfTag are its own address and name; on Kubernetes, where it has an instance in this zone, also those of its Service.
func (m *mesh) frontsOfTag(tag string, local bool) []front {
	fronts := []front{named(tagHost(tag), tagPort)}
	if vip := m.vips[tag]; isAddress(vip) {
		fronts = append(fronts, at(vip, tagPort))
	}
	if m.world.where.IsUniversal() || !local {
		return fronts
	}
	name, namespace, port, ok := model.ParseKubernetesTag(tag)
	if !ok {
		return fronts
	}
	s := m.world.services[types.NamespacedName{Namespace: namespace, Name: name}]
	if s == nil || !slices.Contains(s.ports, port) {
		return fronts
	}
	fronts = append(fronts, named(serviceHost(name, namespace), port))
	for _, ip := range s.ips {
		fronts = append(fronts, at(ip, port))
	}
	return fronts
}

// frontsOf are the addresses and names of a resource's port. A local MeshService is also called by what stands for it
// otherwise: its Service, and its tag by name, so that a client keeps its target when it is switched.
func (m *mesh) frontsOf(c *claim, port uint32) []front {
	own := types.NamespacedName{Namespace: c.id.Namespace, Name: c.id.Name}
	local := c.kind == model.MeshService && c.id.Local
	kubernetes := local && !m.world.where.IsUniversal()

	var fronts []front
	for _, ip := range c.vips {
		// Nobody is called at the ClusterIP of another's Service.
		if owners := m.world.owners[ip]; isAddress(ip) && (len(owners) == 0 || kubernetes && owners.Has(own)) {
			fronts = append(fronts, at(ip, port))
		}
	}
	for _, hostname := range c.hostnames {
		if !strings.HasSuffix(hostname, clusterDomain) || kubernetes && hostname == serviceHost(own.Name, own.Namespace) {
			fronts = append(fronts, named(hostname, port))
		}
	}
	if kubernetes {
		fronts = append(fronts, named(serviceHost(own.Name, own.Namespace), port))
		if s := m.world.services[own]; s != nil && slices.Contains(s.ports, port) {
			for _, ip := range s.ips {
				fronts = append(fronts, at(ip, port))
			}
		}
		fronts = append(fronts, named(tagHost(model.KubernetesTag(own.Name, own.Namespace, port)), tagPort))
	} else if local && port == portOfTag(c) {
		fronts = append(fronts, named(tagHost(own.Name), tagPort))
	}
	slices.SortFunc(fronts, func(a, b front) int { return strings.Compare(a.name, b.name) })
	return slices.Compact(fronts)
}

// portOfTag is which port of a MeshService in universal stands for its tag: that of the tag's name, or else the first.
func portOfTag(c *claim) uint32 {
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

// beats says who is called where both are. What a consumer reaches as a MeshService it calls there, be it by a ClusterIP or a
// name; the tag is called by the consumers that do not reach the MeshService, because for them only the tag is there.
func beats(a, b model.Key) bool {
	if a.Kind == b.Kind {
		return compareKeys(a, b) < 0
	}
	return precedence(a.Kind) < precedence(b.Kind)
}

func precedence(kind model.Kind) int {
	return slices.Index([]model.Kind{model.MeshService, model.MeshMultiZoneService, model.Tag}, kind)
}
