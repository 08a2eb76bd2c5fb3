package snapshot

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// reachSet is the destinations of proxies with the same reach.
type reachSet struct {
	key          string
	reach        model.Reach
	destinations []*destination
	// unresolved are the references that resolve to nothing.
	unresolved []int
	groups     sets.Set[*group]
}

// reachSetOf returns the reach set of a proxy, and creates it if needed.
func (m *mesh) reachSetOf(d *dataplane) *reachSet {
	reach := d.proxy.Reach
	if m.switched[d.proxy.Consumer] {
		reach = reach.WithMeshServices()
	}
	text, err := json.Marshal(reach)
	if err != nil {
		panic(err) // strings and maps can always be encoded
	}
	s := m.reachSets[string(text)]
	if s == nil {
		s = &reachSet{key: string(text), reach: reach, groups: sets.New[*group]()}
		m.reachSets[s.key] = s
		m.fillReachSet(s)
	}
	return s
}

// maxIncremental is the number of added destinations above which all reach sets are rebuilt.
const maxIncremental = 16

// updateReachSets updates the reach sets after changes.
func (m *mesh) updateReachSets(c changes) {
	again := sets.New[*reachSet]()
	for _, d := range c.removed {
		again = again.Union(d.reachSets)
	}
	for _, d := range c.added {
		again = again.Union(d.reachSets)
	}
	for _, s := range m.reachSets {
		if m.dirty.mode || len(c.added) > maxIncremental || slices.ContainsFunc(c.added, func(d *destination) bool {
			return s.reach.Reaches(m.mode, d.Target)
		}) {
			again.Insert(s)
		}
	}
	for s := range again {
		m.fillReachSet(s)
	}
}

// fillReachSet updates the destinations of a reach set.
func (m *mesh) fillReachSet(s *reachSet) {
	now, unmet := m.destinationsFor(s.reach)
	s.unresolved = unmet
	if slices.Equal(s.destinations, now) {
		return
	}
	for _, d := range s.destinations {
		d.reachSets.Delete(s)
	}
	s.destinations = now
	for _, d := range now {
		d.reachSets.Insert(s)
	}
	for g := range s.groups {
		g.dirty = true
	}
}

// destinationsFor returns the destinations of a reach, sorted, and its unresolved references. The result is that of
// Reach.Reaches for each destination.
func (m *mesh) destinationsFor(r model.Reach) (list []*destination, unmet []int) {
	m.destinations.sort()
	if m.mode != model.Exclusive {
		if !r.ServicesSet || slices.Contains(r.Services, "*") {
			list = append(list, m.destinations.tags...)
		} else {
			for _, service := range r.Services {
				if d := m.destinations.all[model.TagKey(service)]; d != nil {
					list = append(list, d)
				}
			}
		}
	}
	switch {
	case m.mode == model.Disabled:
	case r.RefsSet:
		for i, ref := range r.Refs {
			found := m.selectedDestinations(ref)
			if len(found) == 0 {
				unmet = append(unmet, i)
			}
			list = append(list, found...)
		}
	case !r.ServicesSet && (m.mode == model.Everywhere || m.mode == model.Exclusive):
		list = append(list, m.destinations.resources...)
	}
	slices.SortFunc(list, compareDestinations)
	return slices.Clip(slices.Compact(list)), unmet
}

// selectedDestinations returns the destinations of a reference.
func (m *mesh) selectedDestinations(ref model.BackendRef) []*destination {
	var list []*destination
	look := func(d *destination) {
		if ref.Selects(d.Target) {
			list = append(list, d)
		}
	}
	if display, found := ref.Labels[kumav1alpha1.LabelDisplayName]; ref.Name != "" || found {
		candidates := m.destinations.byDisplayName[display]
		if ref.Name != "" {
			candidates = m.destinations.byName[ref.Name]
		}
		for d := range candidates {
			look(d)
		}
		return list
	}
	for _, d := range m.destinations.resources {
		look(d)
	}
	return list
}

func (m *mesh) dropUnusedReachSets() {
	for key, s := range m.reachSets {
		if len(s.groups) > 0 {
			continue
		}
		delete(m.reachSets, key)
		for _, d := range s.destinations {
			d.reachSets.Delete(s)
		}
	}
}
