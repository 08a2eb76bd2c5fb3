package snapshot

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// meshInput is the relevant part of a Mesh.
type meshInput struct {
	name string
	mode model.Mode
	// localFirst says that instances of other zones are a fallback for tags.
	localFirst bool
}

func readMesh(obj *kumav1alpha1.Mesh) *meshInput {
	return &meshInput{
		name: obj.Name, mode: model.Mode(obj.ModeInForce()),
		localFirst: obj.Spec.Routing != nil && obj.Spec.Routing.LocalityAwareLoadBalancing,
	}
}

func (i *meshInput) set(w *zoneState, present bool) {
	if present {
		w.mesh(i.name).setMode(i.mode, i.localFirst)
	} else {
		w.mesh(i.name).setMode(model.Disabled, false)
	}
}

// policyInput is a policy.
type policyInput struct {
	key    objectKey
	mesh   string
	policy kumav1alpha1.Policy
}

func (i *policyInput) set(w *zoneState, present bool) {
	m := w.mesh(i.mesh)
	setKey(m.policies, i.key, i.policy, present)
	m.dirty.policies = true
}

// service is the relevant part of a Kubernetes Service.
type service struct {
	name  types.NamespacedName
	ips   []string
	ports []uint32
}

func readService(obj *corev1.Service) input {
	s := &service{name: types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}}
	if obj.Spec.Type == corev1.ServiceTypeExternalName {
		return s
	}
	ips := obj.Spec.ClusterIPs
	if len(ips) == 0 {
		ips = []string{obj.Spec.ClusterIP}
	}
	for _, ip := range ips {
		if isIP(ip) {
			s.ips = append(s.ips, ip)
		}
	}
	for _, port := range obj.Spec.Ports {
		if port.Protocol == "" || port.Protocol == corev1.ProtocolTCP {
			s.ports = append(s.ports, uint32(port.Port))
		}
	}
	return s
}

func (s *service) set(w *zoneState, present bool) {
	setKey(w.services, s.name, s, present)
	for _, ip := range s.ips {
		setItem(w.owners, ip, s.name, present)
	}
	// The destinations with its addresses.
	for _, m := range w.meshes {
		for _, port := range s.ports {
			m.dirty.keys.Insert(model.TagKey(model.KubernetesTag(s.name.Name, s.name.Namespace, port)))
		}
		for c := range m.byIdentity[s.name] {
			m.markDirty(c)
		}
		for _, ip := range s.ips {
			for c := range m.byVIP[ip] {
				m.markDirty(c)
			}
		}
	}
}

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

// protocolOf returns the protocol, empty if none is written.
func protocolOf(written string) model.Protocol {
	if written == "" {
		return ""
	}
	return model.ProtocolOf(written)
}

// compatibleProtocols are the protocols that a server of a protocol understands, best first.
var compatibleProtocols = map[model.Protocol][]model.Protocol{
	model.GRPC:  {model.GRPC, model.HTTP2, model.TCP},
	model.HTTP2: {model.HTTP2, model.TCP},
	model.HTTP:  {model.HTTP, model.TCP},
	model.TCP:   {model.TCP},
}

// commonProtocol is the best protocol that both understand; an empty one is compatible with all.
func commonProtocol(a, b model.Protocol) model.Protocol {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	for _, p := range compatibleProtocols[a] {
		if slices.Contains(compatibleProtocols[b], p) {
			return p
		}
	}
	return model.TCP
}
