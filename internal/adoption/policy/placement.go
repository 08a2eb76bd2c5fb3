package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// Member is the part of a cluster that placements select by.
type Member struct {
	Name   string
	Labels map[string]string
}

// MembersOf are the clusters that resources can go to.
func MembersOf(clusters []clusterv1alpha1.Cluster) []Member {
	var all []Member
	for i := range clusters {
		if c := &clusters[i]; c.DeletionTimestamp.IsZero() {
			all = append(all, Member{Name: c.Name, Labels: c.Labels})
		}
	}
	return all
}

// Place finds the clusters that a resource goes to, in the order of their names, and the replicas of each if the placement divides
// them. Replicas are negative for a resource without any.
func Place(placement policyv1alpha1.Placement, members []Member, replicas int32) ([]workv1alpha2.TargetCluster, error) {
	var targets []Member
	for _, m := range members {
		selected, err := isSelected(placement.ClusterAffinity, m)
		if err != nil {
			return nil, fmt.Errorf("spec.placement.clusterAffinity: %w", err)
		}
		if selected {
			targets = append(targets, m)
		}
	}
	slices.SortFunc(targets, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	if !placement.Divides() || replicas < 0 {
		var all []workv1alpha2.TargetCluster
		for _, m := range targets {
			all = append(all, workv1alpha2.TargetCluster{Name: m.Name})
		}
		return all, nil
	}
	weights, err := weightsOf(placement.ReplicaScheduling.WeightPreference, targets)
	if err != nil {
		return nil, fmt.Errorf("spec.placement.replicaScheduling.weightPreference: %w", err)
	}
	var all []workv1alpha2.TargetCluster
	for i, share := range divideReplicas(replicas, weights) {
		if weights[i] > 0 && (share > 0 || replicas == 0) {
			all = append(all, workv1alpha2.TargetCluster{Name: targets[i].Name, Replicas: share})
		}
	}
	return all, nil
}

// NotJoined are the clusters that a placement asks for by name and that are no members, in the order of their names. An excluded
// cluster is not asked for.
func NotJoined(placement policyv1alpha1.Placement, members []Member) []string {
	var missing []string
	for _, name := range namedClusters(placement) {
		if !slices.ContainsFunc(members, func(m Member) bool { return m.Name == name }) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// namedClusters are the clusters that a placement asks for by name.
func namedClusters(placement policyv1alpha1.Placement) []string {
	var all []string
	add := func(affinity *policyv1alpha1.ClusterAffinity) {
		for _, name := range affinity.ClusterNames {
			if !slices.Contains(affinity.ExcludeClusters, name) {
				all = append(all, name)
			}
		}
	}
	if placement.ClusterAffinity != nil {
		add(placement.ClusterAffinity)
	}
	if placement.Divides() && placement.ReplicaScheduling.WeightPreference != nil {
		for i := range placement.ReplicaScheduling.WeightPreference.StaticWeightList {
			add(&placement.ReplicaScheduling.WeightPreference.StaticWeightList[i].TargetCluster)
		}
	}
	return all
}

// maxNamed is how many clusters a message names.
const maxNamed = 10

// NotJoinedReason is why a policy is not complete whose placement asks for clusters that have not joined.
func NotJoinedReason(missing []string) passage.Reason {
	names := strings.Join(missing[:min(len(missing), maxNamed)], ", ")
	if more := len(missing) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return passage.Because(model.ReasonNotJoined, "spec.placement names clusters that have not joined the hub, or are leaving it: %s; "+
		"correct the names, or join the clusters with `fairlead join`", names)
}

// isSelected tells whether an affinity selects a cluster. All of its fields have to match.
func isSelected(affinity *policyv1alpha1.ClusterAffinity, m Member) (bool, error) {
	if affinity == nil {
		return true, nil
	}
	if slices.Contains(affinity.ExcludeClusters, m.Name) || len(affinity.ClusterNames) > 0 && !slices.Contains(affinity.ClusterNames, m.Name) {
		return false, nil
	}
	if affinity.LabelSelector == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(affinity.LabelSelector)
	if err != nil {
		return false, err
	}
	return selector.Matches(labels.Set(m.Labels)), nil
}

// weightsOf gives every cluster the largest of the weights that select it, and all the same if the preference has none.
func weightsOf(preference *policyv1alpha1.ClusterPreferences, targets []Member) ([]int64, error) {
	weights := make([]int64, len(targets))
	for i, m := range targets {
		if preference == nil || len(preference.StaticWeightList) == 0 {
			weights[i] = 1
			continue
		}
		for _, w := range preference.StaticWeightList {
			selected, err := isSelected(&w.TargetCluster, m)
			if err != nil {
				return nil, err
			}
			if selected {
				weights[i] = max(weights[i], w.Weight)
			}
		}
	}
	return weights, nil
}

// divideReplicas divides replicas by weight. The remaining ones go to the clusters with the largest remainder; of equal ones, to
// the larger weight, and then to the first.
func divideReplicas(replicas int32, weights []int64) []int32 {
	var total int64
	for _, w := range weights {
		total += w
	}
	shares := make([]int32, len(weights))
	if total == 0 {
		return shares
	}
	left := replicas
	remainders := make([]int64, len(weights))
	order := make([]int, len(weights))
	for i, w := range weights {
		product := int64(replicas) * w
		shares[i], remainders[i], order[i] = int32(product/total), product%total, i
		left -= shares[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(remainders[b], remainders[a]), cmp.Compare(weights[b], weights[a]))
	})
	for _, i := range order[:left] {
		shares[i]++
	}
	return shares
}
