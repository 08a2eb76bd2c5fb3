package policy

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

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
	s.mu.RLock()
	effective := s.effectives[string(key)]
	s.mu.RUnlock()
	if effective != nil {
		return effective
	}
	effective = effectiveOf(matches)
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.effectives[string(key)]; first != nil {
		return first
	}
	s.effectives[string(key)] = effective
	return effective
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
