package policy

import (
	"fmt"

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

// KindsError is why resources of some kinds are not followed that a policy selects.
func (p *Policy) KindsError() error {
	if all := len(p.Kinds()); all > MaxKinds {
		return fmt.Errorf("spec.resourceSelectors names %d different kinds, and only the resources of the first %d are followed: divide the selectors among several policies", all, MaxKinds)
	}
	return nil
}
