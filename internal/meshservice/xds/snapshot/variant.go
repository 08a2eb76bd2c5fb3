package snapshot

import (
	"github.com/fairlead/fairlead/internal/meshservice/policy"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// variant is the resources of a destination under the same effective policies.
type variant struct {
	settings       build.Settings
	cluster, route *resource.Resource
	// clusters get the connections.
	clusters []build.WeightedCluster
	// listeners are by address, and endpoints by affinity tags; both are built on demand.
	listeners map[build.Address]*resource.Resource
	endpoints map[string]*resource.Resource
	// backends are the other destinations of its routes, if routed.
	backends []*destination
	routed   bool
	// problems are by type and name of the resource that could not be built.
	problems map[string]Problem
}

// variant returns the variant of a destination for a class of proxies.
func (m *mesh) variant(d *destination, class *policy.Class) *variant {
	v := d.byClass[class]
	if v != nil {
		return v
	}
	effective := m.policySet.Resolve(class, d.Destination)
	v = d.variants[effective.Fingerprint()]
	if v == nil {
		v = m.newVariant(d, effective)
		d.variants[effective.Fingerprint()] = v
	}
	d.byClass[class] = v
	return v
}

func (m *mesh) newVariant(d *destination, e *policy.Effective) *variant {
	v := &variant{
		settings: build.Settings{
			Timeout: e.Timeout, Retry: e.Retry, CircuitBreaker: e.CircuitBreaker, LoadBalancing: e.LoadBalancing,
		},
		listeners: map[build.Address]*resource.Resource{},
		endpoints: map[string]*resource.Resource{},
		clusters:  []build.WeightedCluster{{Name: d.cluster, Weight: 1}},
	}
	v.cluster = v.marshal(d, resource.Cluster, d.cluster)(build.Cluster(d.cluster, d.Protocol, v.settings))
	m.buildRoutes(v, d, e)
	return v
}

// marshal makes a resource of a message, or reports why not.
func (v *variant) marshal(d *destination, t resource.Type, name string) func(build.Message, error) *resource.Resource {
	return func(message build.Message, err error) *resource.Resource {
		r, err := build.Marshal(name, message, err)
		if err != nil {
			v.report(t, name, Problem{
				Object: d.object, Message: err.Error() + ": correct its policies or its addresses; until then proxies are served without the resource",
			})
			return nil
		}
		delete(v.problems, t.URL()+name)
		return r
	}
}

func (v *variant) report(t resource.Type, name string, p Problem) {
	setKey(&v.problems, t.URL()+name, p, true)
}

// listener returns the listener of an address, or nil if it is invalid.
func (v *variant) listener(d *destination, address build.Address) *resource.Resource {
	l, made := v.listeners[address]
	if !made {
		l = v.marshal(d, resource.Listener, address.Name)(build.Listener(address, d.Protocol, d.cluster, v.clusters, v.settings))
		v.listeners[address] = l
	}
	return l
}

// endpointsFor returns the endpoints for proxies with these tags.
func (v *variant) endpointsFor(m *mesh, d *destination, tags map[string]string) *resource.Resource {
	key := affinityText(v.affinityKeys(), tags)
	e, made := v.endpoints[key]
	if !made {
		localities, overprovisioning := localities(d, m.state.zone.Zone, v.settings.LoadBalancing, tags)
		e = v.marshal(d, resource.Endpoint, d.cluster)(build.Endpoints(d.cluster, localities, overprovisioning), nil)
		v.endpoints[key] = e
	}
	return e
}

func (v *variant) affinityKeys() []string {
	var keys []string
	for _, tag := range policy.AffinityTags(v.settings.LoadBalancing) {
		keys = append(keys, tag.Key)
	}
	return keys
}
