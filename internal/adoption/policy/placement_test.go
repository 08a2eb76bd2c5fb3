package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

func TestPlace(t *testing.T) {
	members := []Member{{Name: "west", Labels: map[string]string{"zone": "w"}}, {Name: "east", Labels: map[string]string{"zone": "e"}}, {Name: "test"}}
	zone := func(z string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"zone": z}}
	}
	wrong := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "Like"}}}
	type affinity = policyv1alpha1.ClusterAffinity
	to := func(a affinity) policyv1alpha1.Placement { return policyv1alpha1.Placement{ClusterAffinity: &a} }
	divided := func(weights ...policyv1alpha1.StaticClusterWeight) policyv1alpha1.Placement {
		scheduling := &policyv1alpha1.ReplicaScheduling{ReplicaSchedulingType: policyv1alpha1.ReplicasDivided}
		if len(weights) > 0 {
			scheduling.WeightPreference = &policyv1alpha1.ClusterPreferences{StaticWeightList: weights}
		}
		return policyv1alpha1.Placement{ReplicaScheduling: scheduling}
	}
	weight := func(w int64, names ...string) policyv1alpha1.StaticClusterWeight {
		return policyv1alpha1.StaticClusterWeight{TargetCluster: affinity{ClusterNames: names}, Weight: w}
	}
	for name, c := range map[string]struct {
		placement policyv1alpha1.Placement
		replicas  int32
		want      string
	}{
		"nothing said":                    {policyv1alpha1.Placement{}, 3, "east test west"},
		"names":                           {to(affinity{ClusterNames: []string{"west", "east", "gone"}}), 3, "east west"},
		"all but some":                    {to(affinity{ExcludeClusters: []string{"test"}}), 3, "east west"},
		"excluded before named":           {to(affinity{ClusterNames: []string{"west", "east"}, ExcludeClusters: []string{"west"}}), 3, "east"},
		"labels":                          {to(affinity{LabelSelector: zone("w")}), 3, "west"},
		"labels and names":                {to(affinity{LabelSelector: zone("w"), ClusterNames: []string{"east"}}), 3, ""},
		"bad labels":                      {to(affinity{LabelSelector: wrong}), 3, `error: spec.placement.clusterAffinity: "Like" is not a valid label selector operator`},
		"divided, no weights":             {divided(), 6, "east=2 test=2 west=2"},
		"divided, and one is left":        {divided(), 7, "east=3 test=2 west=2"},
		"divided by weights":              {divided(weight(2, "west"), weight(1, "east")), 6, "east=2 west=4"},
		"the largest remainder":           {divided(weight(2, "west"), weight(1, "east")), 4, "east=1 west=3"},
		"the heavier of equal remainders": {divided(weight(3, "west"), weight(1, "east")), 2, "west=2"},
		"fewer than clusters":             {divided(), 1, "east=1"},
		"none at all goes everywhere":     {divided(weight(1, "west", "east")), 0, "east=0 west=0"},
		"the heaviest of several weights": {divided(weight(1, "west"), weight(3, "west"), weight(1, "east")), 4, "east=1 west=3"},
		"weights that select no cluster":  {divided(weight(1, "gone")), 4, ""},
		"what has no replicas":            {divided(weight(1, "west")), -1, "east test west"},
		"divided among those that it goes to": {
			policyv1alpha1.Placement{ClusterAffinity: &affinity{ClusterNames: []string{"west", "test"}}, ReplicaScheduling: divided().ReplicaScheduling},
			4, "test=2 west=2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			placed, err := Place(c.placement, members, Demand{Replicas: c.replicas}, Placed{})
			targets := placed.Clusters
			var got []string
			for _, target := range targets {
				text := target.Name
				if c.placement.ReplicaScheduling != nil && c.replicas >= 0 {
					text = fmt.Sprintf("%s=%d", target.Name, target.Replicas)
				}
				got = append(got, text)
			}
			text := strings.Join(got, " ")
			if err != nil {
				text = "error: " + err.Error()
			}
			if text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

func TestNotJoined(t *testing.T) {
	type affinity = policyv1alpha1.ClusterAffinity
	weights := &policyv1alpha1.ReplicaScheduling{
		ReplicaSchedulingType: policyv1alpha1.ReplicasDivided, WeightPreference: &policyv1alpha1.ClusterPreferences{
			StaticWeightList: []policyv1alpha1.StaticClusterWeight{{TargetCluster: affinity{ClusterNames: []string{"west", "wset"}}, Weight: 1}},
		},
	}
	for name, c := range map[string]struct {
		placement policyv1alpha1.Placement
		want      string
	}{
		"nothing said":         {policyv1alpha1.Placement{}, ""},
		"joined":               {policyv1alpha1.Placement{ClusterAffinity: &affinity{ClusterNames: []string{"west"}}}, ""},
		"misspelt":             {policyv1alpha1.Placement{ClusterAffinity: &affinity{ClusterNames: []string{"west", "wset", "esat", "wset"}}}, "esat wset"},
		"listed, and excluded": {policyv1alpha1.Placement{ClusterAffinity: &affinity{ClusterNames: []string{"west", "wset"}, ExcludeClusters: []string{"wset"}}}, ""},
		"in a group": {policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "a", ClusterAffinity: affinity{ClusterNames: []string{"west"}}}, {AffinityName: "b", ClusterAffinity: affinity{ClusterNames: []string{"wset"}}},
		}}, "wset"},
		"a weight": {policyv1alpha1.Placement{ReplicaScheduling: weights}, "wset"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(NotJoined(c.placement, []Member{{Name: "west"}}), " "); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("c%d", i)
	}
	if got := NotJoinedReason(many).Message; !strings.Contains(got, "c8, c9 and 2 more;") || strings.Contains(got, "c10") {
		t.Errorf("got %s", got)
	}
}

func FuzzDivide(f *testing.F) {
	f.Add(int32(7), uint8(1), uint8(2), uint8(3))
	f.Fuzz(func(t *testing.T, replicas int32, a, b, c uint8) {
		replicas = max(0, replicas) % 100_000
		weights := []int64{int64(a), int64(b), int64(c)}
		shares := divideReplicas(replicas, weights)
		var sum int32
		for i, share := range shares {
			if share < 0 || weights[i] == 0 && share > 0 {
				t.Errorf("%d by %v: %v", replicas, weights, shares)
			}
			sum += share
		}
		if slices.Max(weights) > 0 && sum != replicas {
			t.Errorf("%d by %v: %v", replicas, weights, shares)
		}
	})
}
