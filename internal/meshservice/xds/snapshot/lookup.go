package snapshot

import (
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// Lookup returns the resources of the destinations whose clusters have these names as a proxy would get them, whether or not
// it reaches them, as of the last Flush: clusters, endpoints, routes, and the listeners that lead there. Names without a
// destination are left out.
func (e *Engine) Lookup(id model.ProxyID, clusters []string) *resource.Config {
	e.buildMu.Lock()
	defer e.buildMu.Unlock()
	m := e.state.meshes[id.Mesh]
	if m == nil || m.grouped[id] == nil {
		return nil
	}
	g := m.grouped[id]
	found := map[resource.Type][]*resource.Resource{}
	add := func(t resource.Type, r *resource.Resource) {
		if r != nil {
			found[t] = append(found[t], r)
		}
	}
	owners := map[string]listenerOwner{}
	for _, name := range clusters {
		d := m.destinations[model.ParseCluster(name)]
		if d == nil || d.cluster != name {
			continue
		}
		v := m.variant(d, g.class)
		add(resource.Cluster, v.cluster)
		add(resource.Endpoint, v.endpointsFor(m, d, g.tags))
		add(resource.Route, v.route)
		for _, o := range g.outbounds {
			if m.outboundDestination(o) == d {
				owners[o.address.Name] = listenerOwner{destination: d, variant: v, address: o.address}
			}
		}
		for _, address := range d.addresses {
			names := []string{address.Name}
			if address.API {
				names = append(names, address.Host)
			}
			for _, listener := range names {
				if before, taken := owners[listener]; !taken || hasPrecedence(d.Key, before.Key) {
					address.Name = listener
					owners[listener] = listenerOwner{destination: d, variant: v, address: address}
				}
			}
		}
	}
	for _, o := range owners {
		add(resource.Listener, o.listener(o.destination, o.address))
	}
	return resource.NewConfig(found)
}
