// Package policy resolves the effective policies of a destination for a proxy.
//
// Entries that are more specific about the destination take precedence: a section, then a service, then a tag whose MeshService
// the destination is, then the mesh. Next come
// policies that are more specific about the proxies, then the name and the namespace in alphabetical order, and within a policy
// the later entry. Fields that an entry leaves unset are taken from the next one.
//
// On Kubernetes a policy outside the system namespace applies to the proxies of its own namespace, and to others only where it
// targets services of that namespace.
package policy

import (
	"cmp"
	"slices"
	"sync"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Policy is a policy of any kind.
type Policy = kumav1alpha1.Policy

// Set holds the policies of a mesh with indexes. It is safe for concurrent use.
type Set struct {
	// byService and byName are the groups for a value of kuma.io/service and for the name of a Dataplane, byNamespace those
	// for all else of a namespace; others are the rest.
	byService   map[string][]*group
	byName      map[string][]*group
	byNamespace map[string][]*group
	others      []*group
	// selections are the groups by the key of their selection, and system is the namespace whose policies apply everywhere.
	selections map[string]*group
	system     string

	mu         sync.RWMutex
	classes    map[string]*Class
	effectives map[string]*Effective
}

type objectName struct{ namespace, name string }

// entry is one entry of a policy.
type entry struct {
	id        uint32
	kind      string
	policy    objectName
	index     int
	reference reference
	conf      any
}

// Compile indexes the policies of one mesh, which must not be changed afterwards.
func Compile(policies []Policy, where desired.ZoneInfo) *Set {
	s := &Set{
		byService: map[string][]*group{}, byName: map[string][]*group{}, byNamespace: map[string][]*group{},
		selections: map[string]*group{}, system: where.SystemNamespace,
		classes: map[string]*Class{}, effectives: map[string]*Effective{},
	}
	// Of a tenant's policies, own are the groups for its proxies.
	selecting, own := make(map[Policy]*group, len(policies)), map[Policy]*group{}
	for _, p := range policies {
		sel := selectionOf(p)
		selecting[p] = s.group(sel)
		if sel.namespace = tenantOf(p, where); sel.namespace != "" {
			own[p] = s.group(sel)
		}
	}
	ordered := slices.Clone(policies)
	slices.SortStableFunc(ordered, func(a, b Policy) int {
		return cmp.Or(
			cmp.Compare(selecting[b].selection.rank(), selecting[a].selection.rank()),
			cmp.Compare(a.GetName(), b.GetName()),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()),
			cmp.Compare(model.KindOf(a), model.KindOf(b)),
		)
	})
	var id uint32
	for _, p := range ordered {
		ignored := tooLarge(p)
		for _, e := range slices.Backward(p.Entries()) {
			if _, found := ignored[e.Index]; found {
				continue
			}
			s.place(&entry{
				id: id, kind: model.KindOf(p), policy: objectName{p.GetNamespace(), p.GetName()}, index: e.Index,
				reference: referenceOf(e.TargetRef, p.GetNamespace(), isRoute(e.Default)), conf: e.Default,
			}, selecting[p], own[p], tenantOf(p, where))
			id++
		}
	}
	return s
}

// group returns the group of a selection, and creates it if needed.
func (s *Set) group(sel selection) *group {
	key := sel.key()
	if g := s.selections[key]; g != nil {
		return g
	}
	g := newGroup(uint32(len(s.selections)), sel)
	s.selections[key] = g
	switch {
	case sel.service != "":
		s.byService[sel.service] = append(s.byService[sel.service], g)
	case sel.proxy.name != "":
		s.byName[sel.proxy.name] = append(s.byName[sel.proxy.name], g)
	case sel.namespace != "":
		s.byNamespace[sel.namespace] = append(s.byNamespace[sel.namespace], g)
	default:
		s.others = append(s.others, g)
	}
	return g
}

func isRoute(conf any) bool {
	kind, _ := model.RouteBackends(conf)
	return kind != ""
}
