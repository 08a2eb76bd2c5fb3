package policy

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// Anybody who may write a policy may name as many clusters as fit into one. What each name costs does not grow with their number: all
// of it is compared with reading the names once.
func TestManyNamesOfClusters(t *testing.T) {
	var names, excluded []string
	var members []Member
	for i := range 20_000 {
		names, excluded = append(names, fmt.Sprintf("cluster-%06d", i)), append(excluded, fmt.Sprintf("without-%06d", i))
	}
	for i := range 4_000 {
		members = append(members, Member{Name: fmt.Sprintf("another-%06d", i)})
	}
	affinity := policyv1alpha1.ClusterAffinity{ClusterNames: names, ExcludeClusters: excluded}
	weights := &policyv1alpha1.ClusterPreferences{StaticWeightList: []policyv1alpha1.StaticClusterWeight{{TargetCluster: affinity, Weight: 1}}}
	divided := &policyv1alpha1.ReplicaScheduling{ReplicaSchedulingType: policyv1alpha1.ReplicasDivided, WeightPreference: weights}
	base := processorTime(t, func() { _, _ = sets.New(names...), sets.New(excluded...) })
	for name, run := range map[string]func(){
		"clusters that have not joined": func() {
			if n := len(NotJoined(policyv1alpha1.Placement{ClusterAffinity: &affinity}, members)); n != len(names) {
				t.Errorf("%d have not joined", n)
			}
		},
		"clusters by name": func() {
			if placed, err := Place(policyv1alpha1.Placement{ClusterAffinity: &affinity}, members, Demand{Replicas: -1}, Placed{}); err != nil || len(placed.Clusters) > 0 {
				t.Errorf("%v, %v", placed, err)
			}
		},
		"clusters by weight": func() {
			if placed, err := Place(policyv1alpha1.Placement{ReplicaScheduling: divided}, members, Demand{Replicas: 3}, Placed{}); err != nil || len(placed.Clusters) > 0 {
				t.Errorf("%v, %v", placed, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			took := processorTime(t, run)
			t.Logf("%s, to read the names takes %s", took, base)
			if took > 60*max(base, time.Millisecond) {
				t.Errorf("takes %s, to read the names takes %s", took, base)
			}
		})
	}
}

// processorTime is what a run takes of this process, which no other process moves: the least of a few.
func processorTime(t *testing.T, run func()) time.Duration {
	used := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			t.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	var all []time.Duration
	for range 3 {
		before := used()
		run()
		all = append(all, used()-before)
	}
	return slices.Min(all)
}
