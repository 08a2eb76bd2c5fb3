package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Explain returns which entries apply to a destination and why, for a class of proxies, and which do not: entries with
// lower precedence, those that target the same service otherwise, and those of tenants. They are sorted by kind and
// precedence.
func (s *Set) Explain(c *Class, d model.Destination) []Decision {
	decisions := slices.Clone(s.Resolve(c, d).Decisions)
	counted := map[uint32]bool{}
	for _, m := range c.matches(&d, nil) {
		counted[m.id] = true
	}
	var others []match
	for _, g := range c.groups {
		look := func(entries []*entry) {
			for _, e := range entries {
				if e.reference.level(&d) == unrelated && e.reference.whyNot(&d) != "" {
					others = append(others, match{e, unrelated})
				}
			}
		}
		g.candidates(&d, look)
		if d.Key.Kind == model.Tag {
			g.serviceEntries(tagServiceOf(d.Key.Name), look)
		}
		if g.tenantOnly == nil {
			continue
		}
		g.tenantOnly.candidates(&d, func(entries []*entry) {
			for _, e := range entries {
				if level := e.reference.level(&d); level != unrelated && !counted[e.id] {
					others = append(others, match{e, level})
				}
			}
		})
	}
	slices.SortFunc(others, func(a, b match) int { return cmp.Compare(a.id, b.id) })
	for _, m := range slices.CompactFunc(others, match.same) {
		why := m.reference.whyNot(&d)
		if m.level != unrelated {
			why = m.whyTenantOnly(s.system)
		}
		decisions = append(decisions, m.decide(false, why))
	}
	slices.SortStableFunc(decisions, func(a, b Decision) int { return cmp.Compare(a.Kind, b.Kind) })
	return decisions
}

// serviceEntries calls visit with the entries that name a MeshService itself.
func (g *group) serviceEntries(standIn objectName, visit func([]*entry)) {
	visit(g.byName[resourceName{model.MeshService, standIn.namespace, standIn.name}])
	visit(g.byDisplayName[resourceName{kind: model.MeshService, name: standIn.name}])
}

// tagServiceOf is the MeshService of the value of a tag.
func tagServiceOf(tag string) objectName {
	if name, namespace, _, ok := model.ParseKubernetesTag(tag); ok {
		return objectName{namespace, name}
	}
	return objectName{name: tag}
}

// whyNot is why a reference to the same service does not target this destination; empty for other references.
func (r *reference) whyNot(d *model.Destination) string {
	switch {
	case r.only != "" && r.only != namespaceOf(d):
		return ""
	case d.Key.Kind == model.Tag:
		if r.kind != model.MeshService || !r.labelsAllow(tagServiceOf(d.Key.Name)) {
			return ""
		}
		return fmt.Sprintf("targets %s itself, not a kuma.io/service", r.text())
	case r.kind == model.Tag && !r.isTagService(d):
		return ""
	case r.kind == model.Tag && !r.hasPort(d):
		return fmt.Sprintf("targets %s, which is port %d", r.text(), r.port)
	case r.kind == model.Tag && r.route:
		return fmt.Sprintf("targets %s, and a route for a tag does not apply to its MeshService; route the MeshService by its labels and %s", r.text(), model.SectionText(d.Section))
	case r.kind == d.Key.Kind && r.matches(d):
		return fmt.Sprintf("targets section %s of %s, and this is section %s", r.section, r.text(), d.Section)
	}
	return ""
}

// labelsAllow says whether the labels may select the MeshService.
func (r *reference) labelsAllow(standIn objectName) bool {
	for _, label := range []string{kumav1alpha1.LabelNamespace, kumav1alpha1.LabelKubernetesNamespace} {
		if namespace, written := r.labels[label]; written && namespace != standIn.namespace {
			return false
		}
	}
	return true
}

// Decision is whether an entry of a policy applies to a destination.
type Decision struct {
	// Kind of the policy, and its namespace and name.
	Kind   string `json:"kind"`
	Policy string `json:"policy"`
	// Entry is its index in spec.to.
	Entry   int    `json:"entry"`
	Applies bool   `json:"applies"`
	Why     string `json:"why"`
	// InPart says that a part of the entry does not apply to this destination.
	InPart bool `json:"-"`
}

// String returns the namespace and the name.
func (n objectName) String() string {
	return strings.TrimPrefix(n.namespace+"/"+n.name, "/")
}

func (e *entry) decide(applies bool, why string) Decision {
	return Decision{Kind: e.kind, Policy: e.policy.String(), Entry: e.index, Applies: applies, Why: why}
}

// decision of a match that set fields, or whose fields were already set by the first of its kind, if there is one.
func (m match) decision(said bool, first *match) Decision {
	d := m.decide(said, m.why())
	d.InPart = m.losesCrossZone()
	if d.InPart {
		d.Why += "; crossZone does not apply there"
	}
	// What is implied by a tag gives way to every entry for the MeshService itself.
	givesWay := first != nil && m.level.byTag() && first.level.direct()
	switch {
	case said && givesWay:
		d.Why += fmt.Sprintf("; spec.to[%d] of %s takes precedence, since it targets the MeshService itself", first.index, first.policy)
	case said:
	case d.InPart && addsNothing(m):
		d.Why += ", and the entry sets nothing else"
	case givesWay:
		d.Why += fmt.Sprintf(", but spec.to[%d] of %s, which targets the MeshService itself, already sets the same fields", first.index, first.policy)
	case first != nil:
		d.Why += fmt.Sprintf(", but spec.to[%d] of %s already sets the same fields", first.index, first.policy)
	default:
		d.Why += ", but sets no field"
	}
	return d
}

// losesCrossZone says that the entry is for a tag and has a crossZone, which does not apply to a MeshService.
func (m match) losesCrossZone() bool {
	conf, balances := m.conf.(*kumav1alpha1.MeshLoadBalancingStrategyConf)
	return balances && m.level.byTag() && crossesZones(conf)
}

func addsNothing(m match) bool { return !(&Effective{}).merge(m) }

// why is the reason for which the entry targets the destination.
func (m match) why() string {
	r := &m.reference
	switch m.level {
	case ofMesh:
		return "targets every destination of the mesh"
	case ofPortByTag:
		return fmt.Sprintf("targets the kuma.io/service %s, and so port %d of the MeshService %s in namespace %s",
			r.name, r.port, r.tagService.name, r.tagService.namespace)
	case ofServiceByTag:
		return fmt.Sprintf("targets the kuma.io/service %s, and so the MeshService of the same service", r.name)
	case ofSection:
		return fmt.Sprintf("targets section %s of %s", r.section, r.text())
	}
	return "targets " + r.text()
}

// text describes the target of a reference.
func (r *reference) text() string {
	switch {
	case r.kind == model.Tag:
		return "the kuma.io/service " + r.name
	case r.labels != nil:
		return fmt.Sprintf("each %s with its labels", r.kind)
	case r.namespaceWritten:
		return fmt.Sprintf("the %s %s in namespace %s", r.kind, r.name, r.namespace)
	}
	return fmt.Sprintf("the %s %s", r.kind, r.name)
}
