package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
)

// Problem is what could not be built, and what to do.
type Problem struct {
	// Object is who it comes from, and Field what of it.
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	// Message says what is wrong, and the remedy.
	Message string `json:"message"`
}

func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
}

// Explanation is what policies say of a destination, and why.
type Explanation struct {
	Destination model.Destination
	Decisions   []policy.Decision
}

func (c *serviceResource) String() string { return string(c.kind) + " " + c.object.String() }

// Proxies of a mesh, sorted, as of the last Flush. Their reach is that which they were switched to.
func (e *Engine) Proxies(mesh string) []model.Proxy {
	e.buildMu.Lock()
	defer e.buildMu.Unlock()
	m := e.state.meshes[mesh]
	if m == nil {
		return nil
	}
	list := make([]model.Proxy, 0, len(m.grouped))
	for id, g := range m.grouped {
		p := m.proxies[id].proxy
		p.Reach = g.set.reach
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b model.Proxy) int {
		return cmp.Or(cmp.Compare(a.ID.Namespace, b.ID.Namespace), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	return list
}

func (m *mesh) sorted() []model.Destination {
	list := make([]model.Destination, 0, len(m.destinations.all))
	for _, d := range m.destinations.all {
		list = append(list, d.Destination)
	}
	slices.SortFunc(list, func(a, b model.Destination) int { return compareKeys(a.Key, b.Key) })
	return list
}

// Problems of a mesh, sorted, as of the last Flush.
func (e *Engine) Problems(mesh string) []Problem {
	e.buildMu.Lock()
	defer e.buildMu.Unlock()
	m := e.state.meshes[mesh]
	if m == nil {
		return nil
	}
	var list []Problem
	for _, d := range m.destinations.all {
		list = append(list, d.problems...)
		for _, v := range d.variants {
			// One that no proxy is sent any more is kept for a while.
			if len(v.problems) == 0 || !d.isSent(v) {
				continue
			}
			for _, problems := range v.problems {
				list = slices.AppendSeq(list, maps.Values(problems))
			}
		}
	}
	for _, d := range m.byObject {
		list = append(append(list, d.problems...), d.malformed...)
	}
	for _, i := range e.state.ignored {
		list = append(list, Problem{
			Object: kumav1alpha1.ZoneIngressKind + " " + i.name.String(), Field: "metadata.namespace",
			Message: fmt.Sprintf("a ZoneIngress is ignored outside namespace %s: move it to that namespace, or delete it", e.zone.SystemNamespace),
		})
	}
	policies := slices.Collect(maps.Values(m.policies))
	for _, f := range policy.Dangling(policies, m.sorted()) {
		if m.mode == model.Disabled && f.Generated {
			// What was written for MeshServices beforehand waits for them.
			continue
		}
		list = append(list, Problem{Object: f.Kind + " " + f.Policy, Field: f.Field, Message: f.Problem + ": " + f.Remedy})
	}
	for _, p := range policies {
		list = append(list, m.tagRouteProblems(p)...)
	}
	for _, d := range m.proxies {
		list = append(list, m.backendRefProblems(d)...)
	}
	slices.SortFunc(list, compareProblems)
	return slices.Compact(list)
}

// Explain tells, for each destination that a proxy is sent, which policies apply to it and why, as of the last Flush.
func (e *Engine) Explain(id model.ProxyID) []Explanation {
	e.buildMu.Lock()
	defer e.buildMu.Unlock()
	m := e.state.meshes[id.Mesh]
	if m == nil || m.grouped[id] == nil {
		return nil
	}
	g := m.grouped[id]
	all := slices.AppendSeq(slices.Clone(g.set.destinations), maps.Keys(g.extras))
	slices.SortFunc(all, compareDestinations)
	list := make([]Explanation, len(all))
	for i, d := range all {
		list[i] = Explanation{Destination: d.Destination, Decisions: m.set.Explain(g.class, d.Destination)}
	}
	return list
}
