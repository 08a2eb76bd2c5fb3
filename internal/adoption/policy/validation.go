package policy

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// PlacementError is why the placement of a policy is invalid.
func (p *Policy) PlacementError() error { return validatePlacement(p.Spec.Placement) }

// validatePlacement checks all that Place uses of a placement.
func validatePlacement(placement policyv1alpha1.Placement) error {
	if placement.ClusterAffinity != nil && len(placement.ClusterAffinities) > 0 {
		return errors.New("spec.placement has both clusterAffinity and clusterAffinities: remove one of them")
	}
	if err := validateAffinity(placement.ClusterAffinity); err != nil {
		return fmt.Errorf("spec.placement.clusterAffinity: %w", err)
	}
	names := map[string]bool{}
	for i := range placement.ClusterAffinities {
		term := &placement.ClusterAffinities[i]
		if names[term.AffinityName] {
			return fmt.Errorf("spec.placement.clusterAffinities has two groups with the name %s: rename one of them", term.AffinityName)
		}
		names[term.AffinityName] = true
		if err := validateAffinity(&term.ClusterAffinity); err != nil {
			return fmt.Errorf("spec.placement.clusterAffinities[%d]: %w", i, err)
		}
	}
	if _, err := spreadLimits(placement.SpreadConstraints); err != nil {
		return err
	}
	if !placement.Divides() || placement.DividesByRoom() || placement.ReplicaScheduling.WeightPreference == nil {
		return nil
	}
	weights := placement.ReplicaScheduling.WeightPreference.StaticWeightList
	for i := range weights {
		if err := validateAffinity(&weights[i].TargetCluster); err != nil {
			return fmt.Errorf("spec.placement.replicaScheduling.weightPreference.staticWeightList[%d].targetCluster: %w", i, err)
		}
	}
	return nil
}

func validateAffinity(affinity *policyv1alpha1.ClusterAffinity) error {
	if affinity == nil {
		return nil
	}
	if affinity.LabelSelector != nil {
		if _, err := metav1.LabelSelectorAsSelector(affinity.LabelSelector); err != nil {
			return err
		}
	}
	if affinity.FieldSelector == nil {
		return nil
	}
	for _, r := range affinity.FieldSelector.MatchExpressions {
		switch policyv1alpha1.SpreadField(r.Key) {
		case policyv1alpha1.SpreadByProvider, policyv1alpha1.SpreadByRegion, policyv1alpha1.SpreadByZone:
		default:
			return fmt.Errorf("fieldSelector has the key %q: use provider, region or zone", r.Key)
		}
		if r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
			return fmt.Errorf("fieldSelector has the operator %q: use In or NotIn", r.Operator)
		}
	}
	return nil
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
