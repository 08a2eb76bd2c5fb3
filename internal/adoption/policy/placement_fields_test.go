package policy

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// fleet is five clusters of two providers, in three regions.
func fleet() []Member {
	cluster := func(name, provider, region, zone string, zones []string, taints ...corev1.Taint) clusterv1alpha1.Cluster {
		return clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       clusterv1alpha1.ClusterSpec{Provider: provider, Region: region, Zone: zone, Zones: zones, Taints: taints},
		}
	}
	return MembersOf([]clusterv1alpha1.Cluster{
		cluster("a1", "acme", "east", "", []string{"e1"}),
		cluster("a2", "acme", "east", "e2", []string{"e1"}),
		cluster("a3", "acme", "west", "w1", nil, corev1.Taint{Key: "drain", Value: "soon", Effect: corev1.TaintEffectNoSchedule}),
		cluster("b1", "bolt", "west", "w2", nil, corev1.Taint{Key: "drain", Value: "now", Effect: corev1.TaintEffectNoExecute}),
		cluster("b2", "bolt", "north", "n1", nil, corev1.Taint{Key: "busy", Effect: corev1.TaintEffectPreferNoSchedule}),
		cluster("plain", "", "", "", nil),
	})
}

// Where a resource goes by the fields, the taints and the groups of clusters, and by where it is.
func TestPlaceByFields(t *testing.T) {
	by := func(expressions string) string {
		return "clusterAffinity: {fieldSelector: {matchExpressions: [" + expressions + "]}}, clusterTolerations: [{operator: Exists}]"
	}
	groups := "clusterAffinities: [{affinityName: gone, clusterNames: [x]}, {affinityName: tainted, clusterNames: [a3]}, {affinityName: first, clusterNames: [a1]}, {affinityName: second, clusterNames: [a2, b2]}]"
	spreads := func(constraints string) string {
		return "clusterTolerations: [{operator: Exists}], spreadConstraints: [" + constraints + "]"
	}
	weighed := func(target string) string {
		return "replicaScheduling: {replicaSchedulingType: Divided, weightPreference: {staticWeightList: [{weight: 1, targetCluster: {}}, {weight: 1, targetCluster: {" + target + "}}]}}"
	}
	for name, c := range map[string]struct {
		placement string
		// now is where the resource is, after the group that is used, if any.
		now, want string
	}{
		"a provider":                {by("{key: provider, operator: In, values: [acme]}"), "", "a1 a2 a3"},
		"not a provider":            {by("{key: provider, operator: NotIn, values: [acme]}"), "", "b1 b2 plain"},
		"regions":                   {by("{key: region, operator: In, values: [west, north]}"), "", "a3 b1 b2"},
		"a zone, and all of it":     {by("{key: zone, operator: In, values: [e1]}"), "", "a1"},
		"two zones":                 {by("{key: zone, operator: In, values: [e1, e2]}"), "", "a1 a2"},
		"not a zone":                {by("{key: zone, operator: NotIn, values: [e2, w1, w2]}"), "", "a1 b2 plain"},
		"provider and region":       {by("{key: provider, operator: In, values: [acme]}, {key: region, operator: In, values: [west]}"), "", "a3"},
		"an unknown key":            {by("{key: city, operator: In, values: [a]}"), "", `error: spec.placement.clusterAffinity: fieldSelector has the key "city": use provider, region or zone`},
		"an operator without sense": {by("{key: zone, operator: Exists}"), "", `error: spec.placement.clusterAffinity: fieldSelector has the operator "Exists": use In or NotIn`},

		"taints keep away":                   {"", "", "a1 a2 b2 plain"},
		"what is there stays":                {"", "a3 b1", "a1 a2 a3 b1 b2 plain"},
		"tolerated by value":                 {"clusterTolerations: [{key: drain, value: soon}]", "", "a1 a2 a3 b2 plain"},
		"tolerated by another value":         {"clusterTolerations: [{key: drain, value: later}]", "", "a1 a2 b2 plain"},
		"tolerated by key":                   {"clusterTolerations: [{key: drain, operator: Exists}]", "", "a1 a2 a3 b1 b2 plain"},
		"tolerated by effect":                {"clusterTolerations: [{operator: Exists, effect: NoExecute}]", "", "a1 a2 b1 b2 plain"},
		"all tolerated":                      {"clusterTolerations: [{operator: Exists}]", "", "a1 a2 a3 b1 b2 plain"},
		"an operator that tolerates nothing": {"clusterTolerations: [{key: drain, operator: Like, value: soon}]", "", "a1 a2 b2 plain"},

		"the first group that fits":        {groups, "", "first: a1"},
		"the group in use stays":           {groups, "second: a2 b2", "second: a2 b2"},
		"a group in use that fits no more": {groups, "gone: x", "first: a1"},
		"what is there makes a group fit":  {groups, "a3", "tainted: a3"},
		"no group fits":                    {"clusterAffinities: [{affinityName: gone, clusterNames: [x]}]", "", ""},
		"groups beside an affinity":        {"clusterAffinity: {}, " + groups, "", "error: spec.placement has both clusterAffinity and clusterAffinities: remove one of them"},
		"two groups of one name":           {"clusterAffinities: [{affinityName: a}, {affinityName: a}]", "", "error: spec.placement.clusterAffinities has two groups with the name a: rename one of them"},
		"a group that cannot work":         {"clusterAffinities: [{affinityName: a}, {affinityName: b, labelSelector: {matchExpressions: [{key: a, operator: Like}]}}]", "", `error: spec.placement.clusterAffinities[1]: "Like" is not a valid label selector operator`},
		"a group whose constraints do not fit": {
			"spreadConstraints: [{spreadByField: cluster, minGroups: 2}], " + groups, "", "second: a2 b2",
		},

		"a weight that cannot work": {
			"clusterAffinity: {clusterNames: [a1]}, " + weighed("labelSelector: {matchExpressions: [{key: tier, operator: in, values: [a]}]}"), "",
			`error: spec.placement.replicaScheduling.weightPreference.staticWeightList[1].targetCluster: "in" is not a valid label selector operator`,
		},
		"a weight that cannot work, and no cluster": {
			"clusterAffinity: {clusterNames: [x]}, " + weighed("fieldSelector: {matchExpressions: [{key: city, operator: In, values: [a]}]}"), "",
			`error: spec.placement.replicaScheduling.weightPreference.staticWeightList[1].targetCluster: fieldSelector has the key "city": use provider, region or zone`,
		},
		"weights that are not used": {
			"clusterAffinity: {clusterNames: [a1]}, replicaScheduling: {replicaSchedulingType: Duplicated, weightPreference: {staticWeightList: [{weight: 1, targetCluster: {labelSelector: {matchExpressions: [{key: a, operator: Like}]}}}]}}", "", "a1",
		},

		"no group meets the constraints": {"spreadConstraints: [{minGroups: 3}], " + groups, "", "unmet"},
		"the same, and the one in use":   {"spreadConstraints: [{minGroups: 3}], " + groups, "second: a2 b2", "second: a2 b2 unmet"},
		"two clusters":                   {spreads("{spreadByField: cluster, maxGroups: 2}"), "", "a1 a2"},
		"two clusters, where it is":      {spreads("{spreadByField: cluster, maxGroups: 2}"), "b1 plain", "b1 plain"},
		"without a field":                {spreads("{maxGroups: 1}"), "", "a1"},
		"more clusters than there are":   {spreads("{spreadByField: cluster, minGroups: 7}"), "", "unmet"},
		"the same, and it stays":         {spreads("{spreadByField: cluster, minGroups: 7}"), "b1 a2 gone", "a2 b1 unmet"},
		"any number":                     {spreads("{spreadByField: cluster}"), "", "a1 a2 a3 b1 b2 plain"},
		"all clusters of two regions":    {spreads("{spreadByField: region, maxGroups: 2}"), "", "a1 a2 a3 b1"},
		"two regions, one cluster each":  {spreads("{spreadByField: region, minGroups: 2, maxGroups: 2}, {spreadByField: cluster, maxGroups: 2}"), "", "a1 a3"},
		"one region with two clusters":   {spreads("{spreadByField: region, maxGroups: 1}, {spreadByField: cluster, minGroups: 2}"), "b2", "a1 a2"},
		"three regions":                  {spreads("{spreadByField: region, minGroups: 3}, {spreadByField: cluster, maxGroups: 3}"), "", "a1 a3 b2"},
		"more regions than there are":    {spreads("{spreadByField: region, minGroups: 4}"), "", "unmet"},
		"two providers":                  {spreads("{spreadByField: provider, minGroups: 2}, {spreadByField: cluster, maxGroups: 2}"), "", "a1 b1"},
		"one provider, where it is":      {spreads("{spreadByField: provider, maxGroups: 1}"), "b2", "b1 b2"},
		"two zones at most":              {spreads("{spreadByField: zone, maxGroups: 2}"), "", "a1 a2"},
		"providers and regions":          {spreads("{spreadByField: provider, minGroups: 2}, {spreadByField: region, maxGroups: 1}"), "", "a3 b1"},
		"not under static weights":       {spreads("{spreadByField: cluster, maxGroups: 1}") + ", replicaScheduling: {replicaSchedulingType: Divided}", "", "a1 a2 a3 b1 b2 plain"},
		"fewer at most than at least":    {spreads("{spreadByField: cluster, minGroups: 3, maxGroups: 2}"), "", "error: spec.placement.spreadConstraints[0] has maxGroups 2 and minGroups 3: write a maxGroups of at least 3"},
		"a negative number":              {spreads("{spreadByField: cluster, minGroups: -1}"), "", "error: spec.placement.spreadConstraints[0] has a negative number of groups: write 0 or more"},
		"a field twice":                  {spreads("{spreadByField: zone}, {spreadByField: zone}"), "", "error: spec.placement.spreadConstraints[1] is a second constraint by zone: remove one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			var placement policyv1alpha1.Placement
			if err := yaml.UnmarshalStrict([]byte("{"+c.placement+"}"), &placement); err != nil {
				t.Fatal(err)
			}
			placed, err := Place(placement, fleet(), Demand{Replicas: 60}, placedAt(c.now))
			got := describe(placed)
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			if again, _ := Place(placement, fleet(), Demand{Replicas: 60}, placed); err == nil && describe(again) != got {
				t.Errorf("placed again, got %q", describe(again))
			}
			if invalid := (&Policy{Spec: policyv1alpha1.PropagationSpec{Placement: placement}}).PlacementError(); (invalid != nil) != (err != nil) {
				t.Errorf("invalid: %v", invalid)
			}
		})
	}
}

// A NoExecute taint evicts nothing. Where a resource stays in spite of one, that is recorded.
func TestUntolerated(t *testing.T) {
	for name, c := range map[string]struct{ placement, now, want string }{
		"not there":          {"{}", "a1", ""},
		"there":              {"{}", "a1 a3 b1", "b1"},
		"tolerated":          {"{clusterTolerations: [{key: drain, operator: Exists, effect: NoExecute, tolerationSeconds: 0}]}", "b1", ""},
		"tolerated for less": {"{clusterTolerations: [{key: drain, operator: Exists, effect: NoSchedule}]}", "b1", "b1"},
		"excluded":           {"{clusterAffinity: {exclude: [b1]}}", "a1 b1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var placement policyv1alpha1.Placement
			if err := yaml.UnmarshalStrict([]byte(c.placement), &placement); err != nil {
				t.Fatal(err)
			}
			placed, err := Place(placement, fleet(), Demand{Replicas: -1}, placedAt(c.now))
			if got := strings.Join(placed.Untolerated, " "); err != nil || got != c.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// placedAt reads "group: cluster cluster", or only clusters.
func placedAt(text string) Placed {
	var now Placed
	group, names, found := strings.Cut(text, ": ")
	if !found {
		group, names = "", text
	}
	now.Affinity = group
	for _, name := range strings.Fields(names) {
		now.Clusters = append(now.Clusters, workv1alpha2.TargetCluster{Name: name})
	}
	return now
}

func describe(placed Placed) string {
	var names []string
	for _, c := range placed.Clusters {
		names = append(names, c.Name)
	}
	text := strings.Join(names, " ")
	if placed.Unmet {
		text = strings.TrimSpace(text + " unmet")
	}
	if placed.Affinity != "" {
		text = placed.Affinity + ": " + text
	}
	return text
}
