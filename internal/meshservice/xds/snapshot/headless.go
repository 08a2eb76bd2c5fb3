package snapshot

import (
	"slices"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

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
	first := slices.MinFunc(pods.UnsortedList(), comparePrecedence)
	own := key
	own.Name = first.id.Name
	of := m.defineService(first, own)
	d := &definition{
		Destination: of.ForHeadless(key.Name),
		object:      "Service " + key.Namespace + "/" + key.Name,
		addresses: []dialAddress{
			hostAddress(serviceHost(key.Name, key.Namespace), key.Port),
			hostAddress(tagHost(model.KubernetesTag(key.Name, key.Namespace, key.Port)), tagPort),
		},
	}
	var spoken model.Protocol
	for c := range pods {
		spoken = commonProtocol(spoken, m.addService(d, c, c.port(key.Port)))
	}
	d.Protocol = spoken
	return d.normalize()
}
