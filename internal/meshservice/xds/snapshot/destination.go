package snapshot

import (
	"cmp"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
)

// definition is a destination as objects define it.
type definition struct {
	model.Destination
	// object is the defining object, for messages.
	object    string
	endpoints []model.Endpoint
	addresses []build.Address
	// localFirst says that endpoints of other zones are a fallback.
	localFirst bool
	problems   []Problem
}

// destination is a definition, and what is built from it.
type destination struct {
	definition
	cluster string
	// variants are its resources by effective policies; byClass caches the lookup.
	variants map[string]*variant
	byClass  map[*policy.Class]*variant
	// reachSets contain the destination, and extras are groups that need it because of a route or a listed outbound.
	reachSets sets.Set[*reachSet]
	extras    sets.Set[*group]
}

// eachGroup visits the groups whose configuration has the destination.
func (d *destination) eachGroup(visit func(*group)) {
	for s := range d.reachSets {
		for g := range s.groups {
			visit(g)
		}
	}
	for g := range d.extras {
		visit(g)
	}
}

// sentVariants are the variants that are part of a configuration.
func (d *destination) sentVariants() sets.Set[*variant] {
	sent := sets.New[*variant]()
	d.eachGroup(func(g *group) { sent.Insert(d.byClass[g.class]) })
	return sent
}

func (d *destination) dropVariants() {
	d.variants, d.byClass = map[string]*variant{}, map[*policy.Class]*variant{}
}

func compareDestinations(a, b *destination) int { return compareKeys(a.Key, b.Key) }

func compareKeys(a, b model.Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Mesh, b.Mesh), cmp.Compare(a.Port, b.Port))
}

// indexDestination adds a destination to the index by name, or removes it.
func (m *mesh) indexDestination(d *destination, present bool) {
	if d.Key.Kind != model.Tag {
		setItem(&m.byName, d.Name, d, present)
		setItem(&m.byName, d.Labels[kumav1alpha1.LabelDisplayName], d, present)
	}
}

// changes are the destinations that have changed.
type changes struct {
	// added are new or have another target; removed are deleted.
	added, removed []*destination
	// changed have other resources, and endpointsChanged other endpoints only.
	changed, endpointsChanged []*destination
}

// updateDestinations updates the dirty destinations.
func (m *mesh) updateDestinations() changes {
	var c changes
	for key := range m.dirty.keys {
		now := m.define(key)
		d := m.destinations[key]
		switch {
		case now == nil && d == nil:
		case now == nil:
			m.indexDestination(d, false)
			delete(m.destinations, key)
			c.removed = append(c.removed, d)
		case d == nil:
			d = &destination{definition: *now, cluster: key.Cluster(), reachSets: sets.New[*reachSet](), extras: sets.New[*group]()}
			d.dropVariants()
			m.destinations[key] = d
			m.indexDestination(d, true)
			c.added = append(c.added, d)
		default:
			m.updateDestination(d, now, &c)
		}
	}
	return c
}

func (m *mesh) updateDestination(d *destination, now *definition, c *changes) {
	before := d.definition
	if !reflect.DeepEqual(before.Target, now.Target) {
		m.indexDestination(d, false)
		d.definition = *now
		m.indexDestination(d, true)
		c.added = append(c.added, d)
	}
	d.definition = *now
	switch {
	case !reflect.DeepEqual(before.Destination, now.Destination) || !slices.Equal(before.addresses, now.addresses):
		d.dropVariants()
		c.changed = append(c.changed, d)
	case before.localFirst != now.localFirst || !reflect.DeepEqual(before.endpoints, now.endpoints):
		for _, v := range d.variants {
			clear(v.endpoints)
		}
		c.endpointsChanged = append(c.endpointsChanged, d)
	}
}
