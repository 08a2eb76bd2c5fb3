package snapshot

import (
	"cmp"
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// outbound is a listener that a Dataplane lists.
type outbound struct {
	address dialAddress
	// tag is the destination, or else ref.
	tag string
	ref model.BackendRef
}

// loopback is the default address of an outbound.
const loopback = "127.0.0.1"

func outboundsOf(n kumav1alpha1.Networking, namespace string) []outbound {
	var list []outbound
	for _, written := range n.Outbound {
		o := outbound{address: ipAddress(cmp.Or(written.Address, loopback), uint32(written.Port)), tag: written.Tags[kumav1alpha1.TagService]}
		o.address.bound = true
		if ref := written.BackendRef; ref != nil {
			o.tag, o.ref = "", model.BackendRef{Kind: model.Kind(ref.Kind), Name: ref.Name, Labels: ref.Labels, Port: uint32(ref.Port)}
			if o.ref.Name != "" {
				o.ref.Namespace = namespace
			}
		}
		if isIP(o.address.host) {
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
		return m.destinations.all[model.TagKey(o.tag)]
	}
	if m.mode == model.Disabled {
		return nil
	}
	m.destinations.sort()
	found := m.selected(o.ref)
	if len(found) == 0 {
		return nil
	}
	return slices.MinFunc(found, func(a, b *destination) int { return compareLocality(a.Destination, b.Destination) })
}

// compareLocality puts destinations of the local zone first.
func compareLocality(a, b model.Destination) int {
	if a.Local != b.Local {
		if a.Local {
			return -1
		}
		return 1
	}
	return compareKeys(a.Key, b.Key)
}
