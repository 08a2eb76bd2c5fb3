package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// group is a set of proxies with the same configuration: the same reach, policies and locality.
type group struct {
	groupKey
	tags      map[string]string
	outbounds []outbound
	members   sets.Set[model.ProxyID]
	// joined are the previous configurations of members that joined since the last build.
	joined map[model.ProxyID]*resource.Config
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
		var config *resource.Config
		if before != nil {
			config = before.config
			m.removeMember(before, id)
		}
		setKey(&now.joined, id, config, true)
		m.grouped[id] = now
		now.members.Insert(id)
	}
	return gone
}

func (m *mesh) groupOf(d *dataplane, before *group) *group {
	class := m.policySet.Class(d.proxy)
	tags := d.affinityTags(class.AffinityKeys())
	key := groupKey{reachSet: m.reachSetOf(d), class: class, affinity: affinityText(slices.Sorted(maps.Keys(tags)), tags)}
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
	for _, d := range before.destinations() {
		if v := m.previous[d][before.class]; v == nil || v != m.variant(d, g.class) {
			return
		}
	}
	g.config, g.dirty = before.config, false
	g.setExtras(before.extras.Clone())
}

// destinations are those of the configuration.
func (g *group) destinations() []*destination {
	return slices.AppendSeq(slices.Clone(g.reachSet.destinations), maps.Keys(g.extras))
}

func (m *mesh) removeMember(g *group, id model.ProxyID) {
	delete(m.grouped, id)
	g.members.Delete(id)
	if len(g.members) > 0 {
		return
	}
	delete(m.groups, g.groupKey)
	g.setExtras(nil)
	if g.reachSet.groups.Delete(g); len(g.reachSet.groups) == 0 {
		delete(m.reachSets, g.reachSet.key)
		for _, d := range g.reachSet.destinations {
			d.reachSets.Delete(g.reachSet)
		}
	}
}

// affinityTags returns the tags of a proxy with these keys; the first inbound takes precedence.
func (d *dataplane) affinityTags(keys sets.Set[string]) map[string]string {
	var tags map[string]string
	for _, inbound := range slices.Backward(d.proxy.Inbounds) {
		for key, value := range inbound {
			if keys.Has(key) {
				setKey(&tags, key, value, true)
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

// build rebuilds the configuration if needed, and returns the members whose configuration has changed.
func (g *group) build(m *mesh) []model.ProxyID {
	before := g.config
	switch {
	case g.dirty:
		g.buildConfig(m)
	case len(g.newEndpoints) > 0:
		g.replaceEndpoints(m)
	}
	var changed []model.ProxyID
	if !g.config.Equal(before) {
		for id := range g.members {
			if _, joined := g.joined[id]; !joined {
				changed = append(changed, id)
			}
		}
	}
	for id, config := range g.joined {
		if !g.config.Equal(config) {
			changed = append(changed, id)
		}
	}
	g.dirty, g.newEndpoints, g.joined = false, nil, nil
	return changed
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
	address build.Address
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
		v := addWithRoutes(d)
		if v == nil {
			continue
		}
		for _, address := range d.addresses {
			if before, taken := m.listenerOwners[address.Name]; !taken || hasPrecedence(d.Key, before.Key) {
				m.listenerOwners[address.Name] = listenerOwner{destination: d, variant: v, address: address}
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
			m.listenerOwners[o.address.Name] = listenerOwner{destination: d, variant: v, address: o.address}
		}
	}
	for d := range extras.Difference(listed) {
		add(d)
	}
	addListener := func(w listenerOwner) {
		if l := w.listener(w.destination, w.address); l != nil {
			listeners = append(listeners, l)
		}
	}
	for _, w := range m.listenerOwners {
		addListener(w)
		if w.address.API {
			if _, several := m.hostOwners[w.address.Host]; several {
				w.destination = nil
			}
			m.hostOwners[w.address.Host] = w
		}
	}
	// A hostname with one port is also dialled without the port.
	for host, w := range m.hostOwners {
		if w.destination != nil {
			w.address.Name = host
			addListener(w)
		}
	}
	g.setExtras(extras.Union(listed))
	g.config = resource.NewConfig(map[resource.Type][]*resource.Resource{
		resource.Cluster: clusters, resource.Endpoint: endpoints, resource.Listener: listeners, resource.Route: routes,
	})
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
