package snapshot

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
)

// dataplane is the relevant part of a Dataplane.
type dataplane struct {
	proxy model.Proxy
	// object is its name and namespace as an object.
	object    types.NamespacedName
	created   time.Time
	inbounds  []*inbound
	outbounds []outbound
	// claims are inbounds that only the rules of the namespace may allow.
	claims []claim
	// malformed is a reach that cannot be parsed.
	malformed []Problem
}

// inbound is an instance of a service.
type inbound struct {
	of       model.ProxyID
	endpoint model.Endpoint
	name     string
	protocol model.Protocol
}

// claim is an inbound with a tag that is not of the namespace of its Dataplane.
type claim struct {
	*inbound
	index int
	// refused is the tag.
	refused string
}

func (c *claim) isAllowed(rules desired.NamespaceRules) bool {
	return c.refused == kumav1alpha1.TagService && rules.AllowsService(c.tag())
}

func (i *inbound) tag() string { return i.endpoint.Tags[kumav1alpha1.TagService] }

// serves says whether the inbound is a target of a port of a MeshService.
func (i *inbound) serves(target intstr.IntOrString) bool {
	if target.Type == intstr.String {
		return target.StrVal == i.name
	}
	return uint32(target.IntVal) == i.endpoint.Port
}

func readDataplane(obj *kumav1alpha1.Dataplane, where desired.ZoneInfo) *dataplane {
	id := desired.ProxyOf(obj, where)
	d := &dataplane{object: types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}, created: obj.CreationTimestamp.Time, proxy: model.Proxy{
		ID: id, Labels: obj.Labels, Reach: desired.ReachOf(obj, where), Consumer: desired.ConsumerIn(obj, where),
	}}
	n := obj.Spec.Networking
	if t := n.TransparentProxying; t != nil && t.ReachableBackendRefs != nil && t.ReachableBackendRefs.Malformed != "" {
		d.malformed = []Problem{{
			Object: kumav1alpha1.DataplaneKind + " " + d.object.String(), Field: "spec.networking.transparentProxying.reachableBackendRefs",
			Message: "malformed, and treated as an empty list: a reference has kind, name or labels, and optionally namespace and port",
		}}
	}
	d.outbounds = outboundsOf(n, id.Namespace)
	for i, in := range n.Inbound {
		// Policies also select a proxy by the tags of ignored inbounds.
		d.proxy.Inbounds = append(d.proxy.Inbounds, in.Tags)
		if in.InForce() == kumav1alpha1.InboundIgnored {
			continue
		}
		one := &inbound{
			of: id,
			endpoint: model.Endpoint{
				Address: cmp.Or(in.Address, n.AdvertisedAddress, n.Address), Port: uint32(in.Port),
				Zone: where.Zone, Tags: in.Tags, Ready: in.InForce() == kumav1alpha1.InboundReady,
			},
			name:     in.Name,
			protocol: protocolOf(cmp.Or(in.Protocol, in.Tags[kumav1alpha1.TagProtocol])),
		}
		if tag := desired.RefusedTag(obj, in.Tags, desired.NamespaceRules{}, where); tag != "" {
			d.claims = append(d.claims, claim{inbound: one, index: i, refused: tag})
		} else {
			d.inbounds = append(d.inbounds, one)
		}
	}
	return d
}

// inboundsUnder returns the inbounds that count under the rules of the namespace.
func (d *dataplane) inboundsUnder(rules desired.NamespaceRules) []*inbound {
	all := d.inbounds
	for i := range d.claims {
		if c := &d.claims[i]; c.isAllowed(rules) {
			all = append(all[:len(all):len(all)], c.inbound)
		}
	}
	return all
}

// refusals are the inbounds that do not count.
func (d *dataplane) refusals(w *zoneState) []Problem {
	var list []Problem
	for i := range d.claims {
		if c := &d.claims[i]; !c.isAllowed(w.rules[d.object.Namespace]) {
			list = append(list, Problem{
				Object: kumav1alpha1.DataplaneKind + " " + d.object.String(), Field: desired.InboundField(c.index, c.refused),
				Message: desired.RefusedTagText(d.object.Namespace, c.refused, c.endpoint.Tags[c.refused], w.zone),
			})
		}
	}
	return list
}

func (d *dataplane) belongs() (kind, namespace, name, mesh string) {
	return kumav1alpha1.DataplaneKind, d.object.Namespace, d.object.Name, d.proxy.ID.Mesh
}

func (d *dataplane) set(w *zoneState, present bool) {
	m := w.mesh(d.proxy.ID.Mesh)
	setItem(&m.candidates, d.proxy.ID, d, present)
	m.chooseDataplane(d.proxy.ID)
	setKey(&m.byObject, d.object, d, present)
	m.dirty.proxies.Insert(d.proxy.ID)
	for _, in := range d.inboundsUnder(w.rules[d.object.Namespace]) {
		m.inbounds.set(in.endpoint.Tags, in, present)
		if tag := in.tag(); tag != "" {
			m.dirty.keys.Insert(model.TagKey(tag))
		}
		m.selectors.visit(in.endpoint.Tags, m.markDirty)
	}
	m.markDependents("Dataplane", d.object.String())
}

// chooseDataplane picks the Dataplane of a proxy among several, since proxy IDs in universal have no namespace: that of the
// system namespace, or else the oldest.
func (m *mesh) chooseDataplane(id model.ProxyID) {
	if len(m.candidates[id]) == 0 {
		delete(m.proxies, id)
		return
	}
	system := m.state.zone.SystemNamespace
	m.proxies[id] = slices.MinFunc(m.candidates[id].UnsortedList(), func(a, b *dataplane) int {
		return cmp.Or(trueFirst(a.object.Namespace == system, b.object.Namespace == system),
			a.created.Compare(b.created), cmp.Compare(a.object.Namespace, b.object.Namespace))
	})
}

// outbound is a listener that a Dataplane lists.
type outbound struct {
	address build.Address
	// tag is the destination, or else ref.
	tag string
	ref model.BackendRef
}

// loopback is the default address of an outbound.
const loopback = "127.0.0.1"

func outboundsOf(n kumav1alpha1.Networking, namespace string) []outbound {
	var list []outbound
	for _, written := range n.Outbound {
		o := outbound{address: build.IPAddress(cmp.Or(written.Address, loopback), uint32(written.Port)), tag: written.Tags[kumav1alpha1.TagService]}
		o.address.Bind = true
		if ref := written.BackendRef; ref != nil {
			o.tag, o.ref = "", model.BackendRef{Kind: model.Kind(ref.Kind), Name: ref.Name, Labels: ref.Labels, Port: uint32(ref.Port)}
			if o.ref.Name != "" {
				o.ref.Namespace = namespace
			}
		}
		if isIP(o.address.Host) {
			list = append(list, o)
		}
	}
	return list
}

// outboundDestination returns the destination of an outbound, or nil if the mode excludes it; the local zone comes first.
func (m *mesh) outboundDestination(o outbound) *destination {
	if o.tag != "" {
		if m.mode == model.Exclusive {
			return nil
		}
		return m.destinations[model.TagKey(o.tag)]
	}
	if m.mode == model.Disabled {
		return nil
	}
	found := m.appendSelected(nil, o.ref)
	if len(found) == 0 {
		return nil
	}
	return slices.MinFunc(found, func(a, b *destination) int { return compareLocality(a.Destination, b.Destination) })
}

// compareLocality puts destinations of the local zone first.
func compareLocality(a, b model.Destination) int {
	return cmp.Or(trueFirst(a.Local, b.Local), compareKeys(a.Key, b.Key))
}
