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
	// available are the instances behind it, by mesh and kuma.io/service.
	available map[string]map[string]available
}

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
		available: map[string]map[string]available{},
	}
	if i.zone == where.Zone {
		i.zone = "" // local instances are called directly
	}
	for _, a := range obj.Spec.AvailableServices {
		tag := a.Tags[kumav1alpha1.TagService]
		if tag == "" {
			continue
		}
		mesh := cmp.Or(a.Mesh, kumav1alpha1.DefaultMesh)
		if i.available[mesh] == nil {
			i.available[mesh] = map[string]available{}
		}
		// A service is listed once for each set of tags.
		all := i.available[mesh][tag]
		all.protocol = commonProtocol(all.protocol, protocolOf(a.Tags[kumav1alpha1.TagProtocol]))
		all.instances += uint32(max(a.Instances, 1))
		i.available[mesh][tag] = all
	}
	return i
}

func (i *ingress) set(w *zoneState, present bool) {
	if i.ignored {
		setKey(w.ignored, i.name, i, present)
		return
	}
	if i.zone == "" {
		return
	}
	setNested(w.ingresses, i.zone, i.name, i, present)
	for mesh, tags := range i.available {
		m := w.mesh(mesh)
		for tag, instances := range tags {
			setNested(m.remote, tag, i, instances, present)
			m.dirty.keys.Insert(model.TagKey(tag))
		}
	}
	for _, m := range w.meshes {
		for r := range m.byZone[i.zone] {
			m.markDirty(r)
		}
	}
}

func (i *ingress) isDialable() bool { return isIP(i.address) && i.port > 0 && i.port <= 65535 }

func isIP(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Zone() == ""
}
