package policy

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

const byRoom = "{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}"

// How replicas are divided by the room of clusters, and that those which are placed stay.
func TestPlaceByRoom(t *testing.T) {
	for name, c := range map[string]struct {
		// members are clusters with the pods that they have room for: "?" if that is not reported, and "!" after it if the cluster is down.
		members  string
		replicas int32
		// now is where the replicas are, and how they were divided, if otherwise.
		now, before string
		placement   string
		want        string
	}{
		"by room":                              {"east=10 west=30", 8, "", "", "", "east=2 west=6"},
		"one has none":                         {"east=0 west=30", 8, "", "", "", "west=8"},
		"to the last":                          {"east=3 west=4", 7, "", "", "", "east=3 west=4"},
		"not enough":                           {"east=3 west=4", 9, "", "", "", "2 without room"},
		"not enough, and some are placed":      {"east=0 west=1", 9, "east=3 west=4", "", "", "east=3 west=4, 1 without room"},
		"no cluster":                           {"", 9, "", "", "", ""},
		"none of them":                         {"east=3 west=4", 0, "", "", "", "east=0 west=0"},
		"a resource without replicas":          {"east=3 west=?", -1, "", "", "", "east=0 west=0"},
		"one that has not reported":            {"east=30 west=?", 8, "", "", "", "west has not reported"},
		"the same, and all are placed":         {"east=30 west=?", 8, "east=6 west=2", "", "", "east=6 west=2"},
		"the same, and more are wanted":        {"east=30 west=?", 9, "east=6 west=2", "", "", "east=6 west=2, west has not reported"},
		"the same, and fewer are wanted":       {"east=30 west=?", 4, "east=6 west=2", "", "", "east=3 west=1"},
		"one that is down":                     {"east=10 west=30!", 8, "", "", "", "east=8"},
		"all are placed, and there is no room": {"east=0 west=0", 8, "east=6 west=2", "", "", "east=6 west=2"},
		"all are placed, and room has moved":   {"east=0 west=100", 8, "east=6 west=2", "", "", "east=6 west=2"},
		"all are placed, and a cluster joins":  {"east=10 north=100 west=10", 8, "east=6 west=2", "", "", "east=6 west=2"},
		"more, by the room that is left":       {"east=10 west=30", 12, "east=6 west=2", "", "", "east=7 west=5"},
		"fewer, by where they are":             {"east=10 west=30", 4, "east=6 west=2", "", "", "east=3 west=1"},
		"none, and then some":                  {"east=10 west=30", 4, "east=0 west=0", "", "", "east=1 west=3"},
		"a cluster is gone":                    {"east=10 north=10", 8, "east=4 west=4", "", "", "east=6 north=2"},
		"weights before":                       {"east=2 west=0", 8, "east=2 west=6", "{replicaSchedulingType: Divided}", "", "east=3 west=5"},
		"weights before, one not reported":     {"east=4 west=?", 8, "east=4 west=4", "{replicaSchedulingType: Divided}", "", "east=5 west=3"},
		"in each of them before":               {"east=0 west=0", 8, "east=0 west=0", "{replicaSchedulingType: Duplicated}", "", "east=4 west=4"},
		"in one of them before":                {"east=? west=0", 8, "west=0", "null", "", "west=8"},
		"a binding that somebody has deleted":  {"east=0 west=100", 8, "east=6 west=2", "unknown", "", "east=6 west=2"},
		"at most one cluster, and the largest": {"east=10 west=30", 8, "", "", "spreadConstraints: [{spreadByField: cluster, maxGroups: 1}]", "west=8"},
		"at most one cluster, where it is":     {"east=10 west=30", 8, "east=8", "", "spreadConstraints: [{spreadByField: cluster, maxGroups: 1}]", "east=8"},
		"spread over more than there are":      {"east=10 west=30", 8, "", "", "spreadConstraints: [{spreadByField: cluster, minGroups: 3}]", "unmet"},
		"the first group with room":            {"east=1 west=30", 8, "", "", "clusterAffinities: [{affinityName: a, clusterNames: [east]}, {affinityName: b, clusterNames: [west]}]", "b: west=8"},
		"a group in use with no more room":     {"east=1 west=30", 8, "a: east=4", "", "clusterAffinities: [{affinityName: a, clusterNames: [east]}, {affinityName: b, clusterNames: [west]}]", "a: east=4, 3 without room"},
		"no group with room":                   {"east=1 west=3", 8, "", "", "clusterAffinities: [{affinityName: a, clusterNames: [east]}, {affinityName: b, clusterNames: [west]}]", "7 without room"},
	} {
		t.Run(name, func(t *testing.T) {
			var placement policyv1alpha1.Placement
			if err := yaml.UnmarshalStrict([]byte("{replicaScheduling: "+byRoom+", "+c.placement+"}"), &placement); err != nil {
				t.Fatal(err)
			}
			now := roomedAt(t, c.now)
			if now.Former = c.before == "unknown"; now.Former {
				now.Scheduling = nil
			} else if now.Scheduling = placement.ReplicaScheduling; c.now == "" {
				now.Scheduling = nil
			} else if c.before != "" {
				now.Scheduling = nil
				if err := yaml.UnmarshalStrict([]byte(c.before), &now.Scheduling); err != nil {
					t.Fatal(err)
				}
			}
			members := roomy(t, c.members)
			placed, err := Place(placement, members, Demand{Replicas: c.replicas}, now)
			if err != nil {
				t.Fatal(err)
			}
			if got := describeRoom(placed); got != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			if again, _ := Place(placement, members, Demand{Replicas: c.replicas}, placed); describeRoom(again) != c.want {
				t.Errorf("placed again, got %q", describeRoom(again))
			}
		})
	}
}

func roomy(t *testing.T, text string) []Member {
	t.Helper()
	var all []Member
	for _, field := range strings.Fields(text) {
		name, pods, _ := strings.Cut(field, "=")
		pods, down := strings.CutSuffix(pods, "!")
		m := Member{Name: name, Ready: !down}
		if pods != "?" {
			m.Room = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}}
		}
		all = append(all, m)
	}
	return all
}

func roomedAt(t *testing.T, text string) Placed {
	t.Helper()
	group, rest, found := strings.Cut(text, ": ")
	if !found {
		group, rest = "", text
	}
	var now Placed
	now.Affinity = group
	for _, field := range strings.Fields(rest) {
		name, replicas, _ := strings.Cut(field, "=")
		n, err := strconv.Atoi(replicas)
		if err != nil {
			t.Fatal(err)
		}
		now.Clusters = append(now.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: int32(n)})
	}
	return now
}

func describeRoom(placed Placed) string {
	var clusters, parts []string
	for _, c := range placed.Clusters {
		clusters = append(clusters, fmt.Sprintf("%s=%d", c.Name, c.Replicas))
	}
	if len(clusters) > 0 {
		parts = append(parts, strings.Join(clusters, " "))
	}
	if placed.Unmet {
		parts = append(parts, "unmet")
	}
	if placed.NoRoom > 0 {
		parts = append(parts, fmt.Sprintf("%d without room", placed.NoRoom))
	}
	if len(placed.NotReported) > 0 {
		parts = append(parts, strings.Join(placed.NotReported, " ")+" has not reported")
	}
	text := strings.Join(parts, ", ")
	if placed.Affinity != "" {
		text = placed.Affinity + ": " + text
	}
	return text
}
