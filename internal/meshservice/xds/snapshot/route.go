package snapshot

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// buildRoutes builds the routes of a variant.
func (m *mesh) buildRoutes(v *variant, d *destination, e *policy.Effective) {
	for _, f := range e.LeftOut {
		object := f.Kind + " " + f.Policy
		v.report(resource.Route, fmt.Sprintf("%s %s %s", d.cluster, object, f.Field), Problem{Object: object, Field: f.Field, Message: f.Problem + ": " + f.Remedy})
	}
	var rules []build.Rule
	switch {
	case e.HTTPRoute != nil && d.Protocol.HasRequests():
		v.routed = true
		for i, rule := range e.HTTPRoute.Rules {
			if r, ok := m.buildRule(v, d, i, rule); ok {
				rules = append(rules, r)
			}
		}
	case e.TCPRoute != nil && len(e.TCPRoute.BackendRefs) > 0:
		v.routed = true
		if v.clusters = m.weightedClusters(v, e.TCPRoute.BackendRefs, e.TCPRoute.Namespace); !build.HasWeight(v.clusters) {
			v.report(resource.Route, d.cluster+" backends", m.unusableBackends(d, kumav1alpha1.MeshTCPRouteKind))
		}
	}
	v.route = v.marshal(d, resource.Route, d.cluster)(build.Routes(d.cluster, d.Protocol, rules, v.clusters, v.settings))
}

// buildRule builds a rule of a route. An invalid one is left out, so that the others stay in force.
func (m *mesh) buildRule(v *variant, d *destination, i int, from policy.HTTPRule) (build.Rule, bool) {
	rule := build.Rule{Hostnames: from.Hostnames, Match: from.Match, Clusters: v.clusters}
	report := func(err error) {
		v.report(resource.Route, fmt.Sprintf("%s rule %d", d.cluster, i), Problem{
			Object: d.object, Field: "rules of its MeshHTTPRoutes",
			Message: fmt.Sprintf("%v: correct the rule; until then it is left out", err),
		})
	}
	for _, written := range from.Filters {
		filter, err := build.ReadFilter(written)
		if err != nil {
			report(err)
			return rule, false
		}
		// A missing mirror is reported as a dangling reference, or in mode Exclusive as one to a tag.
		if filter.RequestMirror != nil {
			if backend := m.resolveBackend(filter.RequestMirror.BackendRef, from.Namespace); backend != nil {
				v.addBackend(backend)
				filter.RequestMirror.Cluster = backend.cluster
			}
		}
		rule.Filters = append(rule.Filters, filter)
	}
	if len(from.BackendRefs) > 0 {
		if rule.Clusters = m.weightedClusters(v, from.BackendRefs, from.Namespace); !build.HasWeight(rule.Clusters) {
			v.report(resource.Route, fmt.Sprintf("%s rule %d", d.cluster, i), m.unusableBackends(d, kumav1alpha1.MeshHTTPRouteKind))
		}
	}
	if err := rule.Check(); err != nil {
		report(err)
		return rule, false
	}
	return rule, true
}

// unusableBackends is the problem of a route whose backends cannot be used in the mode of the mesh.
func (m *mesh) unusableBackends(d *destination, kind string) Problem {
	what := "connections"
	if d.Protocol.HasRequests() {
		what = "requests"
	}
	return Problem{
		Object: d.object, Field: "backendRefs of its " + kind,
		Message: fmt.Sprintf("no backend with a weight can be used in mode %s: correct the backends; until then %s are rejected", m.mode, what),
	}
}

// weightedClusters are those of existing backends. Missing ones are reported as dangling references.
func (m *mesh) weightedClusters(v *variant, refs []kumav1alpha1.BackendRef, namespace string) []build.WeightedCluster {
	var list []build.WeightedCluster
	for _, ref := range refs {
		backend := m.resolveBackend(ref, namespace)
		if backend == nil {
			continue
		}
		v.addBackend(backend)
		list = append(list, build.WeightedCluster{Name: backend.cluster, Weight: uint32(max(ptr.Deref(ref.Weight, 1), 0))})
	}
	return list
}

func (v *variant) addBackend(backend *destination) {
	if !slices.Contains(v.backends, backend) {
		v.backends = append(v.backends, backend)
	}
}

// resolveBackend resolves a reference; the local zone comes first.
func (m *mesh) resolveBackend(ref kumav1alpha1.BackendRef, namespace string) *destination {
	if m.directory == nil {
		var there []model.Destination
		for key, d := range m.destinations {
			// The mode may exclude tags or resources.
			if tag := key.Kind == model.Tag; tag && m.mode != model.Exclusive || !tag && m.mode != model.Disabled {
				there = append(there, d.Destination)
			}
		}
		m.directory = policy.NewDirectory(there)
	}
	found := m.directory.Backends(ref, namespace)
	if len(found) == 0 {
		return nil
	}
	first := slices.MinFunc(found, compareLocality)
	return m.destinations[first.Key]
}

// rebuildRoutes resolves the backends of routes again after destinations have changed.
func (m *mesh) rebuildRoutes(c *changes) {
	m.directory = nil
	for _, d := range m.destinations {
		for _, v := range d.variants {
			if v.routed {
				d.dropVariants()
				c.changed = append(c.changed, d)
				break
			}
		}
	}
}
