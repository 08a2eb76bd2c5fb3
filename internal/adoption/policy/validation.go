package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementError is why the placement of a policy is invalid.
func (p *Policy) PlacementError() error {
	_, err := Place(p.Spec.Placement, []Member{{Name: "any"}}, Demand{Replicas: 1}, Placed{})
	return err
}

// SelectorErrors are why selectors of a policy are invalid, by index.
func (p *Policy) SelectorErrors() map[int]error {
	invalid := map[int]error{}
	for i, s := range p.Spec.ResourceSelectors {
		if s.LabelSelector == nil || s.Name != "" {
			continue
		}
		if _, err := metav1.LabelSelectorAsSelector(s.LabelSelector); err != nil {
			invalid[i] = err
		}
	}
	return invalid
}
