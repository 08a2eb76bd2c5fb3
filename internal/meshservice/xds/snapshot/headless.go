package snapshot

import (
	"slices"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// whole is what the headless Service is called by of whose pods the claim is one.
func (c *claim) whole(key model.Key) model.Key {
	key.Name = c.headless
	return key
}

// draftHeadless is a port of a headless Service as a whole. Only its pods have MeshServices and addresses, but clients that need
// no proxy dial its name, and keep it when they are switched.
func (m *mesh) draftHeadless(key model.Key) *draft {
	pods := m.headless[key]
	if len(pods) == 0 {
		return nil
	}
	first := slices.MinFunc(pods.UnsortedList(), compareClaims)
	own := key
	own.Name = first.id.Name
	of := m.draftClaim(first, own)
	d := &draft{
		Destination: of.Whole(key.Name),
		object:      "Service " + key.Namespace + "/" + key.Name,
		fronts: []front{
			named(serviceHost(key.Name, key.Namespace), key.Port),
			named(tagHost(model.KubernetesTag(key.Name, key.Namespace, key.Port)), tagPort),
		},
	}
	var spoken model.Protocol
	for c := range pods {
		spoken = common(spoken, m.addService(d, c, c.port(key.Port)))
	}
	d.Protocol = spoken
	return d.settle()
}
