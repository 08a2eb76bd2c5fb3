package policy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// matchesFields tells whether a cluster has the provider, the region and the zones that a selector asks for. All zones of a cluster
// have to be among those of In, and none among those of NotIn.
func matchesFields(selector *policyv1alpha1.FieldSelector, m Member) bool {
	if selector == nil {
		return true
	}
	return !slices.ContainsFunc(selector.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
		have := fieldOf(m, policyv1alpha1.SpreadField(r.Key))
		listed := func(value string) bool { return slices.Contains(r.Values, value) }
		if r.Operator == corev1.NodeSelectorOpNotIn {
			return slices.ContainsFunc(have, listed)
		}
		return len(have) == 0 || slices.ContainsFunc(have, func(value string) bool { return !listed(value) })
	})
}

// fieldOf are the values of a field of a cluster, none if it is not set.
func fieldOf(m Member, field policyv1alpha1.SpreadField) []string {
	one := func(value string) []string {
		if value == "" {
			return nil
		}
		return []string{value}
	}
	switch field {
	case policyv1alpha1.SpreadByProvider:
		return one(m.Provider)
	case policyv1alpha1.SpreadByRegion:
		return one(m.Region)
	}
	return m.Zones
}

// toleratesAll tells whether the taints of a cluster let a resource in that is not there yet.
func toleratesAll(tolerations []corev1.Toleration, taints []corev1.Taint) bool {
	for _, taint := range taints {
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			return false
		}
	}
	return true
}

// untolerated are the clusters that a resource stays in though they have a NoExecute taint that its placement does not tolerate.
func untolerated(placement policyv1alpha1.Placement, members []Member, placed Placed) []string {
	var all []string
	for _, m := range members {
		evicts := slices.DeleteFunc(slices.Clone(m.Taints), func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectNoExecute })
		if len(evicts) > 0 && model.HasCluster(placed.Clusters, m.Name) && !toleratesAll(placement.ClusterTolerations, evicts) {
			all = append(all, m.Name)
		}
	}
	slices.Sort(all)
	return all
}

// tolerates tells whether a toleration is about a taint. One without a key, or without an effect, is about all of them.
func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return t.Key != "" && t.Value == taint.Value
	}
	return false
}
