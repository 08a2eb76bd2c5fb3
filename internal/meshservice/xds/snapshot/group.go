package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// group is a set of proxies with the same configuration: the same reach, policies and locality.
type group struct {
	groupKey
	tags      map[string]string
	outbounds []outbound
	members   sets.Set[model.ProxyID]
	// newMembers joined since the last build.
	newMembers sets.Set[model.ProxyID]
	// extras are destinations outside the reach that routes or listed outbounds refer to.
	extras       sets.Set[*destination]
	config       *resource.Config
	dirty        bool
	newEndpoints []*destination
}

type groupKey struct {
	reachSet *reachSet
	class    *policy.Class
	// affinity are the affinity tags.
	affinity string
	// listed are the outbounds of the Dataplane, as text.
	listed string
}

// assignGroups assigns the dirty proxies to groups, and returns the deleted ones.
func (m *mesh) assignGroups() []model.ProxyID {
	var gone []model.ProxyID
	for id := range m.dirty.proxies {
		before, d := m.grouped[id], m.proxies[id]
		if d == nil {
			if before != nil {
				m.removeMember(before, id)
				gone = append(gone, id)
			}
			continue
		}
		now := m.groupOf(d, before)
		if now == before {
			continue
		}
		if before != nil {
			m.removeMember(before, id)
		}
		m.grouped[id] = now
		now.members.Insert(id)
		if now.newMembers == nil {
			now.newMembers = sets.New[model.ProxyID]()
		}
		now.newMembers.Insert(id)
	}
	m.dropUnusedReachSets()
	return gone
}

func (m *mesh) groupOf(d *dataplane, before *group) *group {
	tags := m.affinityOf(d)
	key := groupKey{reachSet: m.reachSetOf(d), class: m.policySet.Class(d.proxy), affinity: affinityText(m.affinity, tags)}
	if len(d.outbounds) > 0 {
		key.listed = fmt.Sprint(d.outbounds)
	}
	g := m.groups[key]
	if g == nil {
		g = &group{groupKey: key, tags: tags, outbounds: d.outbounds, members: sets.New[model.ProxyID](), dirty: true}
		m.groups[key] = g
		key.reachSet.groups.Insert(g)
		if before != nil {
			m.reuseConfig(g, before)
		}
	}
	return g
}

// reuseConfig takes over the configuration of a group that differs in its policies only, if their effect is the same.
func (m *mesh) reuseConfig(g, before *group) {
	if before.dirty || g.reachSet != before.reachSet || g.affinity != before.affinity || g.listed != before.listed {
		return
	}
	same := func(d *destination) bool {
		v := m.previous[d][before.class]
		return v != nil && v == m.variant(d, g.class)
	}
	for _, d := range g.reachSet.destinations {
		if !same(d) {
			return
		}
	}
	for d := range before.extras {
		if !same(d) {
			return
		}
	}
	g.config, g.dirty = before.config, false
	g.setExtras(before.extras.Clone())
}

func (m *mesh) removeMember(g *group, id model.ProxyID) {
	delete(m.grouped, id)
	g.members.Delete(id)
	g.newMembers.Delete(id)
	if len(g.members) > 0 {
		return
	}
	delete(m.groups, g.groupKey)
	g.reachSet.groups.Delete(g)
	for d := range g.extras {
		d.extras.Delete(g)
	}
}

// affinityOf returns the affinity tags of a proxy.
func (m *mesh) affinityOf(d *dataplane) map[string]string {
	var tags map[string]string
	for _, key := range m.affinity {
		for _, inbound := range d.proxy.Inbounds {
			if value, found := inbound[key]; found {
				if tags == nil {
					tags = map[string]string{}
				}
				tags[key] = value
				break
			}
		}
	}
	return tags
}

func affinityText(keys []string, tags map[string]string) string {
	var text strings.Builder
	for _, key := range keys {
		if value, found := tags[key]; found {
			text.WriteString(pair(key, value) + "\x00")
		}
	}
	return text.String()
}

// build rebuilds the configuration if needed, and says whether it did.
func (g *group) build(m *mesh) bool {
	switch {
	case g.dirty:
		g.buildConfig(m)
	case len(g.newEndpoints) > 0:
		g.replaceEndpoints(m)
	default:
		return false
	}
	g.dirty, g.newEndpoints = false, nil
	return true
}

// replaceEndpoints replaces changed endpoints only.
func (g *group) replaceEndpoints(m *mesh) {
	endpoints := slices.Clone(g.config.Of(resource.Endpoint))
	for _, d := range g.newEndpoints {
		i, found := slices.BinarySearchFunc(endpoints, d.cluster, func(r *resource.Resource, name string) int { return cmp.Compare(r.Name, name) })
		if now := m.variant(d, g.class).endpointsFor(m, d, g.tags); found && now != nil {
			endpoints[i] = now
		}
	}
	g.config = g.config.With(resource.Endpoint, endpoints)
}

// listenerOwner is the destination that a listener belongs to.
type listenerOwner struct {
	*destination
	*variant
	address dialAddress
	// ambiguous says that the host has several ports.
	ambiguous bool
}

// buildConfig builds the whole configuration.
func (g *group) buildConfig(m *mesh) {
	extras := sets.New[*destination]()
	var clusters, endpoints, listeners, routes []*resource.Resource
	clear(m.listenerOwners)
	clear(m.hostOwners)
	add := func(d *destination) *variant {
		v := m.variant(d, g.class)
		cla := v.endpointsFor(m, d, g.tags)
		if v.cluster == nil || cla == nil {
			return nil
		}
		clusters, endpoints = append(clusters, v.cluster), append(endpoints, cla)
		return v
	}
	// addWithRoutes adds a destination with its routes, and their backends as extras.
	addWithRoutes := func(d *destination) *variant {
		v := add(d)
		if v == nil || v.route == nil {
			return nil
		}
		routes = append(routes, v.route)
		for _, backend := range v.backends {
			if !backend.reachSets.Has(g.reachSet) {
				extras.Insert(backend)
			}
		}
		return v
	}
	for _, d := range g.reachSet.destinations {
		if v := addWithRoutes(d); v != nil {
			for _, address := range d.addresses {
				m.claimListener(listenerOwner{destination: d, variant: v, address: address})
			}
		}
	}
	listed := sets.New[*destination]()
	for _, o := range g.outbounds {
		d := m.outboundDestination(o)
		if d == nil {
			continue
		}
		if !d.reachSets.Has(g.reachSet) && !listed.Has(d) {
			listed.Insert(d)
			addWithRoutes(d)
		}
		// Listed outbounds take precedence.
		if v := m.variant(d, g.class); v.cluster != nil && v.route != nil {
			m.listenerOwners[o.address.name] = listenerOwner{destination: d, variant: v, address: o.address}
		}
	}
	for d := range extras.Difference(listed) {
		add(d)
	}
	for _, w := range m.listenerOwners {
		if l := w.listener(w.destination, w.address); l != nil {
			listeners = append(listeners, l)
		}
	}
	for host, w := range m.hostOwners {
		if w.ambiguous {
			continue
		}
		if l := w.listener(w.destination, dialAddress{name: host, host: host, port: w.address.port, api: true}); l != nil {
			listeners = append(listeners, l)
		}
	}
	g.setExtras(extras.Union(listed))
	g.config = resource.NewConfig(map[resource.Type][]*resource.Resource{
		resource.Cluster: clusters, resource.Endpoint: endpoints, resource.Listener: listeners, resource.Route: routes,
	})
}

// claimListener records the destination of an address, and of its hostname without a port.
func (m *mesh) claimListener(w listenerOwner) {
	if before, taken := m.listenerOwners[w.address.name]; !taken || hasPrecedence(w.Key, before.Key) {
		m.listenerOwners[w.address.name] = w
	}
	if !w.address.api {
		return
	}
	before, taken := m.hostOwners[w.address.host]
	switch {
	case !taken:
		m.hostOwners[w.address.host] = w
	case before.address.port != w.address.port:
		before.ambiguous = true
		m.hostOwners[w.address.host] = before
	case hasPrecedence(w.Key, before.Key):
		w.ambiguous = before.ambiguous
		m.hostOwners[w.address.host] = w
	}
}

// setExtras subscribes the group to changes of its extra destinations.
func (g *group) setExtras(extras sets.Set[*destination]) {
	for d := range g.extras {
		d.extras.Delete(g)
	}
	for d := range extras {
		d.extras.Insert(g)
	}
	g.extras = extras
}
