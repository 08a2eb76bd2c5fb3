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

// group is proxies that are sent the same: they reach the same, under the same policies, from beside the same neighbours.
type group struct {
	groupKey
	tags      map[string]string
	outbounds []outbound
	members   sets.Set[model.ProxyID]
	// joined are members since the last build.
	joined sets.Set[model.ProxyID]
	// extras are destinations that are not reached, but that routes or listed outbounds lead to.
	extras sets.Set[*destination]
	config *resource.Config
	dirty  bool
	moved  []*destination
}

type groupKey struct {
	set   *reachSet
	class *policy.Class
	// affinity are the tags by which neighbours are told.
	affinity string
	// listed are the outbounds of its Dataplane, as text.
	listed string
}

// regroup the proxies that were touched, and tell which are gone.
func (m *mesh) regroup() []model.ProxyID {
	var gone []model.ProxyID
	for id := range m.dirty.proxies {
		before, d := m.grouped[id], m.proxies[id]
		if d == nil {
			if before != nil {
				m.leave(before, id)
				gone = append(gone, id)
			}
			continue
		}
		now := m.groupOf(d, before)
		if now == before {
			continue
		}
		if before != nil {
			m.leave(before, id)
		}
		m.grouped[id] = now
		now.members.Insert(id)
		if now.joined == nil {
			now.joined = sets.New[model.ProxyID]()
		}
		now.joined.Insert(id)
	}
	m.forgetUnused()
	return gone
}

func (m *mesh) groupOf(d *dataplane, before *group) *group {
	tags := m.affinityOf(d)
	key := groupKey{set: m.reachOf(d), class: m.set.Class(d.proxy), affinity: affinityText(m.affinity, tags)}
	if len(d.outbounds) > 0 {
		key.listed = fmt.Sprint(d.outbounds)
	}
	g := m.groups[key]
	if g == nil {
		g = &group{groupKey: key, tags: tags, outbounds: d.outbounds, members: sets.New[model.ProxyID](), dirty: true}
		m.groups[key] = g
		key.set.groups.Insert(g)
		if before != nil {
			m.inherit(g, before)
		}
	}
	return g
}

// inherit what a group was sent that differs from another only in the policies, if they say the same as before.
func (m *mesh) inherit(g, before *group) {
	if before.dirty || g.set != before.set || g.affinity != before.affinity || g.listed != before.listed {
		return
	}
	same := func(d *destination) bool {
		v := m.previous[d][before.class]
		return v != nil && v == m.variant(d, g.class)
	}
	for _, d := range g.set.destinations {
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
	g.expect(before.extras.Clone())
}

func (m *mesh) leave(g *group, id model.ProxyID) {
	delete(m.grouped, id)
	g.members.Delete(id)
	g.joined.Delete(id)
	if len(g.members) > 0 {
		return
	}
	delete(m.groups, g.groupKey)
	g.set.groups.Delete(g)
	for d := range g.extras {
		d.extras.Delete(g)
	}
}

// affinityOf are the tags of a proxy by which policies tell its neighbours.
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

// build the group's config if anything in it may be another, and tell whether it was built.
func (g *group) build(m *mesh) bool {
	switch {
	case g.dirty:
		g.assemble(m)
	case len(g.moved) > 0:
		g.move(m)
	default:
		return false
	}
	g.dirty, g.moved = false, nil
	return true
}

// move replaces endpoints, and nothing else.
func (g *group) move(m *mesh) {
	endpoints := slices.Clone(g.config.Of(resource.Endpoint))
	for _, d := range g.moved {
		i, found := slices.BinarySearchFunc(endpoints, d.cluster, func(r *resource.Resource, name string) int { return cmp.Compare(r.Name, name) })
		if now := m.variant(d, g.class).endpointsFor(m, d, g.tags); found && now != nil {
			endpoints[i] = now
		}
	}
	g.config = g.config.With(resource.Endpoint, endpoints)
}

// winner is who is called at a front.
type winner struct {
	*destination
	*variant
	front front
	// ambiguous says that the host has several ports.
	ambiguous bool
}

// assemble all that the group is sent.
func (g *group) assemble(m *mesh) {
	extras := sets.New[*destination]()
	var clusters, endpoints, listeners, routes []*resource.Resource
	clear(m.called)
	clear(m.hosts)
	add := func(d *destination) *variant {
		v := m.variant(d, g.class)
		cla := v.endpointsFor(m, d, g.tags)
		if v.cluster == nil || cla == nil {
			return nil
		}
		clusters, endpoints = append(clusters, v.cluster), append(endpoints, cla)
		return v
	}
	// lead adds a destination that is called, and what its routes lead to.
	lead := func(d *destination) *variant {
		v := add(d)
		if v == nil || v.route == nil {
			return nil
		}
		routes = append(routes, v.route)
		for _, backend := range v.backends {
			if !backend.sets.Has(g.set) {
				extras.Insert(backend)
			}
		}
		return v
	}
	for _, d := range g.set.destinations {
		if v := lead(d); v != nil {
			for _, f := range d.fronts {
				m.call(winner{destination: d, variant: v, front: f})
			}
		}
	}
	listed := sets.New[*destination]()
	for _, o := range g.outbounds {
		d := m.calledAt(o)
		if d == nil {
			continue
		}
		if !d.sets.Has(g.set) && !listed.Has(d) {
			listed.Insert(d)
			lead(d)
		}
		// What a Dataplane lists counts before what is called there otherwise.
		if v := m.variant(d, g.class); v.cluster != nil && v.route != nil {
			m.called[o.front.name] = winner{destination: d, variant: v, front: o.front}
		}
	}
	for d := range extras.Difference(listed) {
		add(d)
	}
	for _, w := range m.called {
		if l := w.listener(w.destination, w.front); l != nil {
			listeners = append(listeners, l)
		}
	}
	for host, w := range m.hosts {
		if w.ambiguous {
			continue
		}
		if l := w.listener(w.destination, front{name: host, host: host, port: w.front.port, api: true}); l != nil {
			listeners = append(listeners, l)
		}
	}
	g.expect(extras.Union(listed))
	g.config = resource.NewConfig(map[resource.Type][]*resource.Resource{
		resource.Cluster: clusters, resource.Endpoint: endpoints, resource.Listener: listeners, resource.Route: routes,
	})
}

// call remembers who is called at a front, and by a name alone.
func (m *mesh) call(w winner) {
	if before, taken := m.called[w.front.name]; !taken || beats(w.Key, before.Key) {
		m.called[w.front.name] = w
	}
	if !w.front.api {
		return
	}
	before, taken := m.hosts[w.front.host]
	switch {
	case !taken:
		m.hosts[w.front.host] = w
	case before.front.port != w.front.port:
		before.ambiguous = true
		m.hosts[w.front.host] = before
	case beats(w.Key, before.Key):
		w.ambiguous = before.ambiguous
		m.hosts[w.front.host] = w
	}
}

// expect is told of changes of destinations that are not reached, too.
func (g *group) expect(extras sets.Set[*destination]) {
	for d := range g.extras {
		d.extras.Delete(g)
	}
	for d := range extras {
		d.extras.Insert(g)
	}
	g.extras = extras
}
