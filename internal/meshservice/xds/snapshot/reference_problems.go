package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

// tagRouteProblems are the entries and backends of a route that refer to tags only, in mode Exclusive.
func (m *mesh) tagRouteProblems(p kumav1alpha1.Policy) []Problem {
	if m.mode != model.Exclusive {
		return nil
	}
	var list []Problem
	for _, s := range successor.TagReferencesIn(p, m.portsOf) {
		switch {
		case !s.Backend:
			list = append(list, Problem{Object: s.Route, Field: s.Field, Message: "the entry has no effect: " + s.Why(m.mode) + "; " + s.Remedy(m.portsOf)})
		case !s.OfTag:
			list = append(list, Problem{Object: s.Route, Field: s.Field, Message: "the backend gets no traffic: " + s.Why(m.mode) + "; " + s.Remedy(m.portsOf)})
		}
	}
	return list
}

// portsOf returns the ports of the MeshServices of a name and namespace, in all zones.
func (m *mesh) portsOf(name, namespace string) []successor.Port {
	var ports []successor.Port
	for d := range m.byName[name] {
		if d.Key.Kind == model.MeshService && d.Key.Name == name && d.Key.Namespace == namespace {
			ports = append(ports, successor.Port{Number: d.Key.Port, Name: d.Section})
		}
	}
	return ports
}

// Ports returns the ports of the MeshServices of a mesh, as of the last Flush.
func (e *Engine) Ports(mesh string) successor.Ports {
	return func(name, namespace string) []successor.Port {
		e.buildMu.Lock()
		defer e.buildMu.Unlock()
		m := e.state.meshes[mesh]
		if m == nil {
			return nil
		}
		return m.portsOf(name, namespace)
	}
}

// backendRefProblems are the backend references of a proxy that resolve to nothing. They are reported once for the
// consumer, whose proxies all have the same.
func (m *mesh) backendRefProblems(d *dataplane) []Problem {
	g := m.grouped[d.proxy.ID]
	if m.mode == model.Disabled || g == nil || !d.proxy.Reach.RefsSet {
		return nil
	}
	var list []Problem
	for _, i := range g.reachSet.unresolved {
		ref := g.reachSet.reach.Refs[i]
		// An empty selector may match nothing.
		if ref.Kind == kumav1alpha1.MeshExternalServiceKind || ref.Labels != nil && len(ref.Labels) == 0 {
			continue
		}
		message := fmt.Sprintf("no %s exists: correct the reference, or remove it", refText(ref))
		if ref.Name == "" && ref.Labels == nil {
			message = fmt.Sprintf("the reference has neither name nor labels: write the name of a %s, or labels: {} for all of them", ref.Kind)
		}
		list = append(list, Problem{Object: d.proxy.Consumer, Field: fmt.Sprintf("reachableBackendRefs[%d]", i), Message: message})
	}
	return list
}

func refText(ref model.BackendRef) string {
	text := fmt.Sprintf("%s %s", ref.Kind, strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"))
	if ref.Name == "" {
		text = fmt.Sprintf("%s with the labels %s", ref.Kind, labels.FormatLabels(ref.Labels))
	}
	if ref.Port != 0 {
		text += fmt.Sprintf(" with port %d", ref.Port)
	}
	return text
}

// DataplaneProblems are what is ignored of a Dataplane, and its backend references that are malformed or resolve to nothing, as of
// the last Flush.
func (e *Engine) DataplaneProblems(obj *kumav1alpha1.Dataplane) []Problem {
	e.buildMu.Lock()
	defer e.buildMu.Unlock()
	d, there := e.state.inputs[keyOf(obj)].(*dataplane)
	if !there {
		return nil
	}
	if refused := e.state.refusedMember(d, d.proxy.ID.Mesh); refused != nil {
		return []Problem{*refused}
	}
	list := slices.Concat(d.refusals(&e.state), d.malformed)
	if m := e.state.meshes[d.proxy.ID.Mesh]; m != nil {
		list = append(list, m.backendRefProblems(d)...)
	}
	return list
}
