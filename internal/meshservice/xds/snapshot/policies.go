package snapshot

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

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
	var list []policy.Policy
	keys := sets.New[string]()
	for _, p := range m.policies {
		list = append(list, p)
		if s, ok := p.(*kumav1alpha1.MeshLoadBalancingStrategy); ok {
			for i := range s.Spec.To {
				for _, tag := range affinityTags(&s.Spec.To[i].Default) {
					keys.Insert(tag.Key)
				}
			}
		}
	}
	m.policySet = policy.Compile(list, m.state.zone)
	affinity := slices.Sorted(slices.Values(keys.UnsortedList()))
	m.previous = map[*destination]map[*policy.Class]*variant{}
	for _, d := range m.destinations {
		if slices.Equal(m.affinity, affinity) {
			m.previous[d] = d.byClass
		}
		d.byClass = map[*policy.Class]*variant{}
	}
	m.affinity = affinity
	for id := range m.proxies {
		m.dirty.proxies.Insert(id)
	}
}
