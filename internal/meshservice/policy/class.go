package policy

import (
	"cmp"
	"encoding/binary"
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Class stands for all proxies that the same policies select.
type Class struct {
	groups []*group
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
	s.mu.RLock()
	class := s.classes[string(key)]
	s.mu.RUnlock()
	if class != nil {
		return class
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if class = s.classes[string(key)]; class == nil {
		class = &Class{groups: groups}
		s.classes[string(key)] = class
	}
	return class
}
