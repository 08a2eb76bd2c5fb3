package policy

import (
	"fmt"
	"testing"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/test/harness/growth"
)

// BenchmarkManyNamesOfClusters places by names of clusters, of which a policy may have as many as fit into it, and of which no cluster
// is compared with all.
func BenchmarkManyNamesOfClusters(b *testing.B) {
	for name, run := range map[string]func(affinity policyv1alpha1.ClusterAffinity, members []Member) (found int, err error){
		"clusters that have not joined": func(affinity policyv1alpha1.ClusterAffinity, members []Member) (int, error) {
			return len(NotJoined(policyv1alpha1.Placement{ClusterAffinity: &affinity}, members)) - len(affinity.ClusterNames), nil
		},
		"clusters by name": func(affinity policyv1alpha1.ClusterAffinity, members []Member) (int, error) {
			placed, err := Place(policyv1alpha1.Placement{ClusterAffinity: &affinity}, members, Demand{Replicas: -1}, Placed{})
			return len(placed.Clusters), err
		},
		"clusters by weight": func(affinity policyv1alpha1.ClusterAffinity, members []Member) (int, error) {
			weights := &policyv1alpha1.ClusterPreferences{StaticWeightList: []policyv1alpha1.StaticClusterWeight{{TargetCluster: affinity, Weight: 1}}}
			divided := &policyv1alpha1.ReplicaScheduling{ReplicaSchedulingType: policyv1alpha1.ReplicasDivided, WeightPreference: weights}
			placed, err := Place(policyv1alpha1.Placement{ReplicaScheduling: divided}, members, Demand{Replicas: 3}, Placed{})
			return len(placed.Clusters), err
		},
	} {
		b.Run(name, func(b *testing.B) {
			growth.Linear(b, 2_000, 8_000, func(n int) func() {
				var affinity policyv1alpha1.ClusterAffinity
				var members []Member
				for i := range n {
					affinity.ClusterNames = append(affinity.ClusterNames, fmt.Sprintf("cluster-%06d", i))
					affinity.ExcludeClusters = append(affinity.ExcludeClusters, fmt.Sprintf("without-%06d", i))
					members = append(members, Member{Name: fmt.Sprintf("another-%06d", i)})
				}
				return func() {
					if found, err := run(affinity, members); err != nil || found != 0 {
						b.Errorf("%d, %v", found, err)
					}
				}
			})
		})
	}
}
