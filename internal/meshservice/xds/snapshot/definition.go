package snapshot

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
)

// define returns the definition of a destination, or nil if there is none.
func (m *mesh) define(key model.Key) *definition {
	if key.Kind == model.Tag {
		return m.defineTag(key)
	}
	claims := m.services[key]
	if len(claims) == 0 {
		return m.defineHeadless(key)
	}
	first := firstOf(claims)
	d := m.defineService(first, key)
	for other := range claims {
		if other != first {
			d.problems = append(d.problems, Problem{
				Object: other.String(), Field: "metadata.labels",
				Message: fmt.Sprintf("claims to be the %s, which %s already is: rename one of them, or correct its labels", key, first),
			})
		}
	}
	slices.SortFunc(d.problems, compareProblems)
	return d
}

// defineTag defines the destination of a tag: its local instances, and ingresses to those of other zones.
func (m *mesh) defineTag(key model.Key) *definition {
	tag := key.Name
	local, remote := m.inbounds[pair(kumav1alpha1.TagService, tag)], m.remote[tag]
	if len(local)+len(remote) == 0 {
		return nil
	}
	d := &definition{
		Destination: model.Destination{Target: model.Target{Key: key}},
		object:      string(model.Tag) + " " + tag,
		localFirst:  m.localFirst,
		addresses:   m.tagAddresses(tag, len(local) > 0),
	}
	for in := range local {
		d.Protocol = commonProtocol(d.Protocol, in.protocol)
		d.addLocal(in)
	}
	for ingress, a := range remote {
		d.Protocol = commonProtocol(d.Protocol, a.protocol)
		d.addRemote(ingress, a.instances)
	}
	return d.normalize()
}

func (m *mesh) defineService(c *serviceResource, key model.Key) *definition {
	port := c.port(key.Port)
	d := &definition{
		Destination: model.Destination{
			Target:   model.Target{Key: key, Name: c.object.Name, Namespace: c.object.Namespace, Labels: c.labels},
			Section:  port.SectionName(),
			Protocol: protocolOf(port.AppProtocol),
			Local:    c.kind == model.MeshService && c.id.Local,
		},
		object:     c.String(),
		localFirst: c.kind == model.MeshMultiZoneService,
		addresses:  m.serviceAddresses(c, key.Port),
	}
	var spoken model.Protocol
	if c.kind == model.MeshService {
		spoken = m.addService(d, c, port)
	} else {
		for s := range m.selectedBy(c) {
			// Of duplicates only the first by precedence is used.
			if of := s.port(key.Port); of != nil && firstOf(m.services[s.key(key.Port)]) == s && !s.unavailable {
				spoken = commonProtocol(spoken, m.addService(d, s, of))
			}
		}
	}
	d.Protocol = cmp.Or(d.Protocol, spoken)
	return d.normalize()
}

// headlessKey is the key of the headless Service as a whole.
func (c *serviceResource) headlessKey(key model.Key) model.Key {
	key.Name = c.headless
	return key
}

// defineHeadless defines a port of a headless Service as a whole. Only its pods have MeshServices and VIPs, but proxyless
// clients dial the name of the Service, and keep it when they are switched.
func (m *mesh) defineHeadless(key model.Key) *definition {
	pods := m.headless[key]
	if len(pods) == 0 {
		return nil
	}
	first := firstOf(pods)
	own := key
	own.Name = first.id.Name
	of := m.defineService(first, own)
	d := &definition{
		Destination: of.ForHeadless(key.Name),
		object:      "Service " + key.Namespace + "/" + key.Name,
		addresses: []build.Address{
			build.HostAddress(serviceHost(key.Name, key.Namespace), key.Port),
			build.HostAddress(tagHost(model.KubernetesTag(key.Name, key.Namespace, key.Port)), tagPort),
		},
	}
	var spoken model.Protocol
	for c := range pods {
		spoken = commonProtocol(spoken, m.addService(d, c, c.port(key.Port)))
	}
	d.Protocol = spoken
	return d.normalize()
}

// selectedBy returns the MeshServices of a MeshMultiZoneService.
func (m *mesh) selectedBy(c *serviceResource) map[*serviceResource]bool {
	selected := map[*serviceResource]bool{}
	if len(c.selector) == 0 {
		for _, claims := range m.services {
			for s := range claims {
				if s.kind == model.MeshService {
					selected[s] = true
				}
			}
		}
		return selected
	}
	for s := range m.byLabels.smallestSet(c.selector) {
		if model.MatchesAll(c.selector, s.labels) {
			selected[s] = true
		}
	}
	return selected
}

// addService adds the endpoints of a port of a MeshService, local instances or the ingresses of its zone, and returns its
// protocol.
func (m *mesh) addService(d *definition, c *serviceResource, port *kumav1alpha1.Port) model.Protocol {
	spoken := protocolOf(port.AppProtocol)
	if !c.id.Local {
		for _, ingress := range m.state.ingresses[c.id.Zone] {
			d.addRemote(ingress, max(c.instances, 1))
		}
		return spoken
	}
	target := port.TargetPort
	if target == (intstr.IntOrString{}) {
		target = intstr.FromInt32(port.Port)
	}
	var seen model.Protocol
	foreign := sets.New[string]()
	for _, in := range m.candidateInbounds(c) {
		switch {
		case !model.MatchesAll(c.selector, in.endpoint.Tags):
		case c.selectorNamespace != "" && desired.InboundNamespace(in.of.Namespace, in.endpoint.Tags) != c.selectorNamespace:
			foreign.Insert(in.of.Namespace + "/" + in.of.Name)
		case in.serves(target):
			seen = commonProtocol(seen, in.protocol)
			d.addLocal(in)
		}
	}
	if len(foreign) > 0 {
		d.problems = append(d.problems, Problem{
			Object: c.String(), Field: "spec.selector.dataplaneTags", Message: desired.ForeignDataplanesText(foreign.UnsortedList(), m.state.zone),
		})
	}
	return cmp.Or(spoken, seen)
}

// candidateInbounds are the inbounds among which a MeshService selects by tags.
func (m *mesh) candidateInbounds(c *serviceResource) []*inbound {
	if c.ref == "" {
		return m.inbounds.smallestSet(c.selector).UnsortedList()
	}
	if of := m.byObject[types.NamespacedName{Namespace: c.object.Namespace, Name: c.ref}]; of != nil {
		return of.inboundsUnder(m.state.rules[of.object.Namespace])
	}
	return nil
}

func (d *definition) addLocal(in *inbound) {
	if !isIP(in.endpoint.Address) || in.endpoint.Port == 0 {
		d.problems = append(d.problems, Problem{
			Object: "Dataplane " + in.of.String(), Field: "spec.networking.address",
			Message: fmt.Sprintf("%q is not an IP address: write an IP address", in.endpoint.Address),
		})
		return
	}
	d.endpoints = append(d.endpoints, in.endpoint)
}

func (d *definition) addRemote(i *ingress, instances uint32) {
	if !i.isDialable() {
		d.problems = append(d.problems, Problem{
			Object: "ZoneIngress " + i.name.String(), Field: "spec.networking.advertisedAddress",
			Message: fmt.Sprintf("%q port %d cannot be dialled: write an IP address and a port", i.address, i.port),
		})
		return
	}
	d.endpoints = append(d.endpoints, model.Endpoint{Address: i.address, Port: i.port, Zone: i.zone, Weight: instances, Ready: true})
}

// normalize makes the definition independent of the order of objects, and merges duplicate endpoints.
func (d *definition) normalize() *definition {
	d.Protocol = cmp.Or(d.Protocol, model.TCP)
	slices.SortFunc(d.endpoints, compareEndpoints)
	merged := d.endpoints[:0]
	for _, e := range d.endpoints {
		last := len(merged) - 1
		if last < 0 || merged[last].Address != e.Address || merged[last].Port != e.Port || merged[last].Zone != e.Zone {
			merged = append(merged, e)
			continue
		}
		if e.Tags == nil {
			merged[last].Weight += e.Weight
		}
		merged[last].Ready = merged[last].Ready || e.Ready
	}
	d.endpoints = merged
	slices.SortFunc(d.problems, compareProblems)
	d.problems = slices.Compact(d.problems)
	return d
}

func compareEndpoints(a, b model.Endpoint) int {
	return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port),
		cmp.Compare(fmt.Sprint(a.Tags), fmt.Sprint(b.Tags)), cmp.Compare(a.Weight, b.Weight))
}

// protocolOf returns the protocol, empty if none is written.
func protocolOf(written string) model.Protocol {
	if written == "" {
		return ""
	}
	return model.ProtocolOf(written)
}

// commonProtocol is the best protocol that both understand; an empty one is compatible with all.
func commonProtocol(a, b model.Protocol) model.Protocol {
	switch {
	case a == b || b == "":
		return a
	case a == "":
		return b
	case a.HasRequests() && b.HasRequests() && a != model.HTTP && b != model.HTTP:
		return model.HTTP2 // gRPC is HTTP/2
	}
	return model.TCP
}
