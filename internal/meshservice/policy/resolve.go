package policy

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Class stands for all proxies that the same policies select.
type Class struct {
	groups       []*group
	affinityKeys sets.Set[string]
}

// Class returns the class of a proxy. Classes with the same policies are the same pointer.
func (s *Set) Class(p model.Proxy) *Class {
	var groups []*group
	consider := func(candidates []*group) {
		for _, g := range candidates {
			if g.selection.selects(p) {
				groups = append(groups, g)
			}
		}
	}
	consider(s.others)
	consider(s.byNamespace[p.ID.Namespace])
	for i, tags := range p.Inbounds {
		service := tags[kumav1alpha1.TagService]
		again := slices.ContainsFunc(p.Inbounds[:i], func(t map[string]string) bool { return t[kumav1alpha1.TagService] == service })
		if service != "" && !again {
			consider(s.byService[service])
		}
	}
	consider(s.byName[p.ID.Name])
	slices.SortFunc(groups, func(a, b *group) int { return cmp.Compare(a.id, b.id) })

	key := make([]byte, 0, 4*len(groups))
	for _, g := range groups {
		key = binary.BigEndian.AppendUint32(key, g.id)
	}
	return computeOnce(&s.mu, s.classes, key, func() *Class { return &Class{groups: groups, affinityKeys: affinityKeysOf(groups)} })
}

// computeOnce returns the value of a key, and computes it if it is not known yet.
func computeOnce[V any](mu *sync.RWMutex, known map[string]*V, key []byte, compute func() *V) *V {
	mu.RLock()
	value := known[string(key)]
	mu.RUnlock()
	if value != nil {
		return value
	}
	value = compute()
	mu.Lock()
	defer mu.Unlock()
	if first := known[string(key)]; first != nil {
		return first
	}
	known[string(key)] = value
	return value
}

// match is an entry that targets a destination.
type match struct {
	*entry
	level level
}

// same says that both are of one entry.
func (m match) same(other match) bool { return m.id == other.id }

// Resolve returns the effective policies of a destination for a class of proxies. The result is shared and must not be
// changed.
func (s *Set) Resolve(c *Class, d model.Destination) *Effective {
	var room [16]match
	matches := c.matches(&d, room[:0])

	var keyRoom [16 * 5]byte
	key := keyRoom[:0]
	for _, m := range matches {
		key = append(binary.BigEndian.AppendUint32(key, m.id), byte(m.level))
	}
	return computeOnce(&s.mu, s.effectives, key, func() *Effective { return effectiveOf(matches) })
}

// matches returns the entries that target a destination, by precedence.
func (c *Class) matches(d *model.Destination, matches []match) []match {
	for _, g := range c.groups {
		g.candidates(d, func(entries []*entry) {
			for _, e := range entries {
				if level := e.reference.level(d); level != unrelated {
					matches = append(matches, match{e, level})
				}
			}
		})
	}
	slices.SortFunc(matches, func(a, b match) int { return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(a.id, b.id)) })
	// Proxies of a tenant match its entries twice.
	return slices.CompactFunc(matches, match.same)
}
