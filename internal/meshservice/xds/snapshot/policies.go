package snapshot

import (
	"maps"
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
)

// policyInput is a policy.
type policyInput struct {
	mesh   string
	policy kumav1alpha1.Policy
}

func (i *policyInput) set(w *zoneState, present bool) {
	m := w.mesh(i.mesh)
	setKey(&m.policies, i, i.policy, present)
	m.dirty.policies = true
}

// compilePolicies compiles the policies, and marks every proxy dirty.
func (m *mesh) compilePolicies() {
	m.policySet = policy.Compile(slices.Collect(maps.Values(m.policies)), m.state.zone)
	m.previous = map[*destination]map[*policy.Class]*variant{}
	for _, d := range m.destinations {
		m.previous[d] = d.byClass
		d.byClass = map[*policy.Class]*variant{}
	}
	for id := range m.proxies {
		m.dirty.proxies.Insert(id)
	}
}
