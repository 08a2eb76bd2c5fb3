package snapshot

import (
	"cmp"
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

// maxIncremental is the number of added and removed destinations above which all reach sets are rebuilt.
const maxIncremental = 16

// updateReachSets updates the reach sets after changes.
func (m *mesh) updateReachSets(c changes) {
	moved := slices.Concat(c.added, c.removed)
	for _, s := range m.reachSets {
		if m.dirty.mode || len(moved) > maxIncremental || slices.ContainsFunc(moved, func(d *destination) bool {
			return d.reachSets.Has(s) || s.reach.Reaches(m.mode, d.Target)
		}) {
			m.fillReachSet(s)
		}
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
	addAll := func(tags bool) {
		for key, d := range m.destinations {
			if (key.Kind == model.Tag) == tags {
				list = append(list, d)
			}
		}
	}
	if m.mode != model.Exclusive {
		if !r.ServicesSet || slices.Contains(r.Services, "*") {
			addAll(true)
		} else {
			for _, service := range r.Services {
				if d := m.destinations[model.TagKey(service)]; d != nil {
					list = append(list, d)
				}
			}
		}
	}
	switch {
	case m.mode == model.Disabled:
	case r.RefsSet:
		for i, ref := range r.Refs {
			before := len(list)
			if list = m.appendSelected(list, ref); len(list) == before {
				unmet = append(unmet, i)
			}
		}
	case !r.ServicesSet && (m.mode == model.Everywhere || m.mode == model.Exclusive):
		addAll(false)
	}
	slices.SortFunc(list, compareDestinations)
	return slices.Clip(slices.Compact(list)), unmet
}

// appendSelected appends the destinations of a reference.
func (m *mesh) appendSelected(list []*destination, ref model.BackendRef) []*destination {
	look := func(d *destination) {
		if ref.Selects(d.Target) {
			list = append(list, d)
		}
	}
	if name := cmp.Or(ref.Name, ref.Labels[kumav1alpha1.LabelDisplayName]); name != "" {
		for d := range m.byName[name] {
			look(d)
		}
		return list
	}
	for _, d := range m.destinations {
		look(d)
	}
	return list
}
