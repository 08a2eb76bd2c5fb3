package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
)

// Problem is something that could not be built.
type Problem struct {
	// Object and Field are the cause.
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	// Message says what is wrong, and what to do.
	Message string `json:"message"`
}

func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
}

// Explanation is the policy decisions for a destination.
type Explanation struct {
	Destination model.Destination
	Decisions   []policy.Decision
}

// Proxies returns the proxies of a mesh, sorted, as of the last Flush. The reach of switched ones includes MeshServices.
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
		p.Reach = g.reachSet.reach
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b model.Proxy) int {
		return cmp.Or(cmp.Compare(a.ID.Namespace, b.ID.Namespace), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	return list
}

// Consumer returns the consumer of a proxy, as of the last Flush; empty if there is no such Dataplane.
func (e *Engine) Consumer(id model.ProxyID) string {
	e.buildMu.Lock()
	defer e.buildMu.Unlock()
	if m := e.state.meshes[id.Mesh]; m != nil && m.proxies[id] != nil {
		return m.proxies[id].proxy.Consumer
	}
	return ""
}

func (m *mesh) sortedDestinations() []model.Destination {
	list := make([]model.Destination, 0, len(m.destinations))
	for _, d := range m.destinations {
		list = append(list, d.Destination)
	}
	slices.SortFunc(list, func(a, b model.Destination) int { return compareKeys(a.Key, b.Key) })
	return list
}

// variantProblems are those of the variants that proxies are sent. The others are dropped later.
func (d *destination) variantProblems() []Problem {
	var list []Problem
	var sent sets.Set[*variant]
	for _, v := range d.variants {
		if len(v.problems) == 0 {
			continue
		}
		if sent == nil {
			sent = d.sentVariants()
		}
		if sent.Has(v) {
			list = slices.AppendSeq(list, maps.Values(v.problems))
		}
	}
	return list
}

// Problems returns the problems of a mesh, sorted, as of the last Flush.
func (e *Engine) Problems(mesh string) []Problem {
	e.buildMu.Lock()
	defer e.buildMu.Unlock()
	m := e.state.meshes[mesh]
	if m == nil {
		return nil
	}
	var list []Problem
	for _, d := range m.destinations {
		list = append(list, d.problems...)
		list = append(list, d.variantProblems()...)
	}
	for _, d := range m.byObject {
		list = append(append(list, d.refusals(m.state)...), d.malformed...)
	}
	for _, in := range e.state.inputs {
		if refused := e.state.refusedMember(in, mesh); refused != nil {
			list = append(list, *refused)
		}
		if i, ok := in.(*ingress); ok && i.ignored {
			list = append(list, Problem{
				Object: kumav1alpha1.ZoneIngressKind + " " + i.name.String(), Field: "metadata.namespace",
				Message: fmt.Sprintf("a ZoneIngress is ignored outside namespace %s: move it to that namespace, or delete it",
					m.state.zone.SystemNamespace),
			})
		}
	}
	policies := slices.Collect(maps.Values(m.policies))
	for _, f := range policy.Dangling(policies, m.sortedDestinations()) {
		if m.mode == model.Disabled && f.Generated {
			// MeshServices are not generated yet.
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

// Destinations returns how many destinations a proxy has, as of the last Flush.
func (e *Engine) Destinations(id model.ProxyID) int {
	e.buildMu.Lock()
	defer e.buildMu.Unlock()
	m := e.state.meshes[id.Mesh]
	if m == nil || m.grouped[id] == nil {
		return 0
	}
	return len(m.grouped[id].reachSet.destinations)
}

// Explain returns which policies apply to each destination of a proxy, and why, as of the last Flush.
func (e *Engine) Explain(id model.ProxyID) []Explanation {
	e.buildMu.Lock()
	defer e.buildMu.Unlock()
	m := e.state.meshes[id.Mesh]
	if m == nil || m.grouped[id] == nil {
		return nil
	}
	g := m.grouped[id]
	all := g.destinations()
	slices.SortFunc(all, compareDestinations)
	list := make([]Explanation, len(all))
	for i, d := range all {
		list[i] = Explanation{Destination: d.Destination, Decisions: m.policySet.Explain(g.class, d.Destination)}
	}
	return list
}
