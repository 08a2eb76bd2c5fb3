package snapshot

import (
	"cmp"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// ingress is a ZoneIngress of another zone.
type ingress struct {
	name    types.NamespacedName
	zone    string
	address string
	port    uint32
	// ignored says that it is outside the system namespace.
	ignored bool
	// available are the instances behind it.
	available map[meshTag]available
}

// meshTag is a kuma.io/service of a mesh.
type meshTag struct{ mesh, tag string }

type available struct {
	instances uint32
	protocol  model.Protocol
}

func readIngress(obj *kumav1alpha1.ZoneIngress, where desired.ZoneInfo) input {
	n := obj.Spec.Networking
	i := &ingress{
		name:      types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name},
		zone:      obj.Spec.Zone,
		address:   cmp.Or(n.AdvertisedAddress, n.Address),
		port:      uint32(cmp.Or(n.AdvertisedPort, n.Port)),
		ignored:   !desired.IsTrusted(obj, where),
		available: map[meshTag]available{},
	}
	if i.zone == where.Zone {
		i.zone = "" // local instances are called directly
	}
	for _, a := range obj.Spec.AvailableServices {
		key := meshTag{cmp.Or(a.Mesh, kumav1alpha1.DefaultMesh), a.Tags[kumav1alpha1.TagService]}
		if key.tag == "" {
			continue
		}
		// A service is listed once for each set of tags.
		all := i.available[key]
		all.protocol = commonProtocol(all.protocol, protocolOf(a.Tags[kumav1alpha1.TagProtocol]))
		all.instances += uint32(max(a.Instances, 1))
		i.available[key] = all
	}
	return i
}

func (i *ingress) set(w *zoneState, present bool) {
	if i.ignored || i.zone == "" {
		return
	}
	setNested(&w.ingresses, i.zone, i.name, i, present)
	for key, instances := range i.available {
		m := w.mesh(key.mesh)
		setNested(&m.remote, key.tag, i, instances, present)
		m.dirty.keys.Insert(model.TagKey(key.tag))
	}
	for _, m := range w.meshes {
		m.markDependents("Zone", i.zone)
	}
}

func (i *ingress) isDialable() bool { return isIP(i.address) && i.port > 0 && i.port <= 65535 }

func isIP(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Zone() == ""
}
