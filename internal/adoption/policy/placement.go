package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// Member is the part of a cluster that placements select by.
type Member struct {
	Name             string
	Labels           map[string]string
	Provider, Region string
	Zones            []string
	Taints           []corev1.Taint
	// Room is what the cluster has reported of its nodes and pods, nil if it has not. Ready is whether it can be reached now.
	Room  *clusterv1alpha1.ResourceSummary
	Ready bool
}

// MembersOf are the clusters that resources can go to.
func MembersOf(clusters []clusterv1alpha1.Cluster) []Member {
	var all []Member
	for i := range clusters {
		c := &clusters[i]
		if !c.DeletionTimestamp.IsZero() {
			continue
		}
		m := Member{Name: c.Name, Labels: c.Labels, Provider: c.Spec.Provider, Region: c.Spec.Region, Zones: c.Spec.Zones, Taints: c.Spec.Taints}
		m.Room, m.Ready = c.Status.ResourceSummary, meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady)
		if c.Spec.Zone != "" && !slices.Contains(m.Zones, c.Spec.Zone) {
			m.Zones = append([]string{c.Spec.Zone}, m.Zones...)
		}
		all = append(all, m)
	}
	return all
}

// Placed is where a resource is: a placement moves it only if it has to.
type Placed struct {
	Clusters []workv1alpha2.TargetCluster
	model.Placing
	// Scheduling is how the replicas of a resource that is placed were divided.
	Scheduling *policyv1alpha1.ReplicaScheduling
	// Former holds if the binding was deleted by hand: how the replicas were divided is unknown.
	Former bool
}

// Demand is what a resource needs of its clusters.
type Demand struct {
	// Replicas are negative for a resource without any.
	Replicas int32
	// Requests are the resources that one replica requests.
	Requests corev1.ResourceList
}

// PlacedBy is where the resource of a binding is; nowhere, without a binding.
func PlacedBy(b *model.Binding) Placed {
	if b == nil {
		return Placed{}
	}
	now := Placed{Clusters: b.Spec.Clusters, Former: isFormer(b), Placing: model.Placing{Affinity: model.AffinityOf(b)}}
	if b.Spec.Placement != nil {
		now.Scheduling = b.Spec.Placement.ReplicaScheduling
	}
	return now
}

// Place finds the clusters that a resource goes to, in the order of their names, and the replicas of each if the placement divides
// them. Whether a placement is valid depends on nothing else.
func Place(placement policyv1alpha1.Placement, members []Member, demand Demand, now Placed) (Placed, error) {
	if err := validatePlacement(placement); err != nil {
		return Placed{}, err
	}
	placed := selectClusters(placement, members, demand, now)
	placed.Untolerated = untolerated(placement, members, placed)
	return placed, nil
}

// selectClusters finds the clusters of a valid placement.
func selectClusters(placement policyv1alpha1.Placement, members []Member, demand Demand, now Placed) Placed {
	if len(placement.ClusterAffinities) == 0 {
		return placeGroup(placement, placement.ClusterAffinity, members, demand, now)
	}
	var chosen, kept Placed
	for i := range placement.ClusterAffinities {
		term := &placement.ClusterAffinities[i]
		placed := placeGroup(placement, &term.ClusterAffinity, members, demand, now)
		placed.Affinity = term.AffinityName
		inUse := term.AffinityName == now.Affinity
		// Replicas that are placed do not move to another group because more of them have no room.
		unmet := placed.Unmet || placed.LacksRoom() && (!inUse || len(placed.Clusters) == 0)
		switch {
		case unmet && (inUse || !kept.Unmet && !kept.LacksRoom()):
			kept = placed
		case len(placed.Clusters) > 0 && !unmet && (chosen.Affinity == "" || inUse):
			// The group in use stays, even if an earlier one fits again: nothing moves that need not.
			chosen = placed
		}
	}
	if chosen.Affinity == "" {
		if len(kept.Clusters) == 0 {
			// A group that is not used yet is not preferred later.
			kept.Affinity = ""
		}
		return kept
	}
	return chosen
}

// placeGroup finds the clusters of one affinity.
func placeGroup(placement policyv1alpha1.Placement, affinity *policyv1alpha1.ClusterAffinity, members []Member, demand Demand, now Placed) Placed {
	var targets []Member
	selector := selectorOf(affinity)
	for _, m := range members {
		if selector.selects(m) && (model.HasCluster(now.Clusters, m.Name) || toleratesAll(placement.ClusterTolerations, m.Taints)) {
			targets = append(targets, m)
		}
	}
	slices.SortFunc(targets, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	targets, unmet := spread(placement, targets, demand, now)
	placed := Placed{Placing: model.Placing{Unmet: unmet}, Scheduling: placement.ReplicaScheduling}
	replicas := demand.Replicas
	if !placement.Divides() || replicas < 0 {
		for _, m := range targets {
			placed.Clusters = append(placed.Clusters, workv1alpha2.TargetCluster{Name: m.Name})
		}
		return placed
	}
	if placement.DividesByRoom() {
		placed.divideByRoom(placement, targets, demand, now)
		return placed
	}
	weights := weightsOf(placement.ReplicaScheduling.WeightPreference, targets)
	for i, share := range divideReplicas(replicas, weights) {
		if weights[i] > 0 && (share > 0 || replicas == 0) {
			placed.Clusters = append(placed.Clusters, workv1alpha2.TargetCluster{Name: targets[i].Name, Replicas: share})
		}
	}
	return placed
}

// NotJoined are the clusters that a placement asks for by name and that are no members, in the order of their names. An excluded
// cluster is not asked for.
func NotJoined(placement policyv1alpha1.Placement, members []Member) []string {
	missing := namedClusters(placement)
	for _, m := range members {
		missing.Delete(m.Name)
	}
	return sets.List(missing)
}

// namedClusters are the clusters that a placement asks for by name.
func namedClusters(placement policyv1alpha1.Placement) sets.Set[string] {
	all := sets.New[string]()
	add := func(affinity *policyv1alpha1.ClusterAffinity) {
		excluded := sets.New(affinity.ExcludeClusters...)
		for _, name := range affinity.ClusterNames {
			if !excluded.Has(name) {
				all.Insert(name)
			}
		}
	}
	if placement.ClusterAffinity != nil {
		add(placement.ClusterAffinity)
	}
	for i := range placement.ClusterAffinities {
		add(&placement.ClusterAffinities[i].ClusterAffinity)
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

// clusterSelector is a valid affinity, read once for all clusters: it may have as many names as fit into a policy.
type clusterSelector struct {
	affinity        *policyv1alpha1.ClusterAffinity
	byLabels        labels.Selector
	named, excluded sets.Set[string]
}

func selectorOf(affinity *policyv1alpha1.ClusterAffinity) clusterSelector {
	s := clusterSelector{affinity: affinity, byLabels: labels.Everything()}
	if affinity == nil {
		return s
	}
	if affinity.LabelSelector != nil {
		s.byLabels, _ = metav1.LabelSelectorAsSelector(affinity.LabelSelector)
	}
	s.named, s.excluded = sets.New(affinity.ClusterNames...), sets.New(affinity.ExcludeClusters...)
	return s
}

// selects tells whether an affinity selects a cluster. All of its fields have to match.
func (s clusterSelector) selects(m Member) bool {
	return s.affinity == nil || matchesFields(s.affinity.FieldSelector, m) && s.byLabels.Matches(labels.Set(m.Labels)) &&
		!s.excluded.Has(m.Name) && (len(s.named) == 0 || s.named.Has(m.Name))
}

// weightsOf gives every cluster the largest of the weights that select it, and all the same if the preference has none.
func weightsOf(preference *policyv1alpha1.ClusterPreferences, targets []Member) []int64 {
	if preference == nil || len(preference.StaticWeightList) == 0 {
		return slices.Repeat([]int64{1}, len(targets))
	}
	weights := make([]int64, len(targets))
	for _, w := range preference.StaticWeightList {
		selector := selectorOf(&w.TargetCluster)
		for i, m := range targets {
			if selector.selects(m) {
				weights[i] = max(weights[i], w.Weight)
			}
		}
	}
	return weights
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
