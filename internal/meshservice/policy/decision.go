package policy

import (
	"fmt"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Decision is whether an entry of a policy applies to a destination.
type Decision struct {
	// Kind of the policy, and its namespace and name.
	Kind   string `json:"kind"`
	Policy string `json:"policy"`
	// Entry is its index in spec.to.
	Entry   int    `json:"entry"`
	Applies bool   `json:"applies"`
	Why     string `json:"why"`
}

// String returns the namespace and the name.
func (n objectName) String() string {
	if n.namespace == "" {
		return n.name
	}
	return n.namespace + "/" + n.name
}

func (e *entry) decide(applies bool, why string) Decision {
	return Decision{Kind: e.kind, Policy: e.policy.String(), Entry: e.index, Applies: applies, Why: why}
}

// decision of a match that set fields, or whose fields were already set by the first of its kind.
func (m match) decision(said bool, first *entry) Decision {
	why := m.why()
	_, balances := m.conf.(*kumav1alpha1.MeshLoadBalancingStrategyConf)
	switch {
	case said && balances && m.level.byTag():
		return m.decide(true, why+"; only localZone applies there")
	case said:
		return m.decide(true, why)
	case balances && m.level.byTag() && addsNothing(m):
		return m.decide(false, why+"; only localZone applies there, and the entry has none")
	case first != nil:
		return m.decide(false, fmt.Sprintf("%s, but spec.to[%d] of %s already sets the same fields", why, first.index, first.policy))
	}
	return m.decide(false, why+", but sets no field")
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
