package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// Constraints are unmet only if no set of clusters meets them: for small fleets, all sets are tried. Clusters are left out only if a
// limit excludes them, and where resources are meets the constraints as long as it did.
func TestSpreadFindsWhatThereIs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	met := 0
	for n := range 1000 {
		placement, members := policyv1alpha1.Placement{SpreadConstraints: randomConstraints(random)}, randomMembers(random)
		limits, err := spreadLimits(placement.SpreadConstraints)
		if err != nil {
			t.Fatal(err)
		}
		possible := slices.ContainsFunc(subsets(members), func(set []Member) bool { return meets(limits, set) })
		placed, err := Place(placement, members, Demand{Replicas: -1}, Placed{})
		if err != nil || placed.Unmet == possible {
			t.Fatalf("%d: unmet %t, %v, but possible %t: %+v of %+v", n, placed.Unmet, err, possible, placement.SpreadConstraints, members)
		}
		if !possible {
			continue
		}
		met++
		chosen := membersAt(members, placed)
		if !meets(limits, chosen) {
			t.Fatalf("%d: %+v does not meet %+v", n, chosen, placement.SpreadConstraints)
		}
		for _, m := range members {
			if more := append(slices.Clone(chosen), m); !slices.ContainsFunc(chosen, func(c Member) bool { return c.Name == m.Name }) && meets(limits, more) {
				t.Fatalf("%d: %+v leaves out %s, with %+v", n, chosen, m.Name, placement.SpreadConstraints)
			}
		}
		if again, _ := Place(placement, members, Demand{Replicas: -1}, placed); describe(again) != describe(placed) {
			t.Fatalf("%d: %s moves to %s", n, describe(placed), describe(again))
		}
		// A set that meets the constraints, but is not the one that is chosen first.
		sets := slices.DeleteFunc(subsets(members), func(set []Member) bool { return !meets(limits, set) })
		now := Placed{}
		for _, m := range sets[random.IntN(len(sets))] {
			now.Clusters = append(now.Clusters, workv1alpha2.TargetCluster{Name: m.Name})
		}
		stays, _ := Place(placement, members, Demand{Replicas: -1}, now)
		for _, c := range now.Clusters {
			if !slices.Contains(stays.Clusters, c) {
				t.Fatalf("%d: %s loses %s: %s", n, describe(now), c.Name, describe(stays))
			}
		}
	}
	if met < 300 {
		t.Errorf("only %d fleets can meet their constraints", met)
	}
}

// A search that would take longer than anybody waits is given up: no set of these zones meets the constraint, but that is seen only
// when half of them are chosen. What can be found without giving a cluster up is found in a fleet of any size.
func TestSpreadIsBounded(t *testing.T) {
	var members []Member
	for i := range 4000 {
		zones := []string{fmt.Sprint("left-", i/3), fmt.Sprint("right-", i%1000), fmt.Sprint("own-", i)}
		members = append(members, Member{Name: fmt.Sprintf("c%04d", i), Region: fmt.Sprint(i % 1500), Zones: zones})
	}
	placeBy := func(limits ...policyv1alpha1.SpreadConstraint) Placed {
		placed, err := Place(policyv1alpha1.Placement{SpreadConstraints: limits}, members, Demand{Replicas: -1}, Placed{})
		if err != nil {
			t.Fatal(err)
		}
		return placed
	}
	if placed := placeBy(
		policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByZone, MaxGroups: 1499},
		policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByCluster, MinGroups: 1200},
	); !placed.Unmet {
		t.Errorf("%d clusters", len(placed.Clusters))
	}
	if placed := placeBy(
		policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByZone, MinGroups: 3000},
		policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByRegion, MinGroups: 1500, MaxGroups: 1500},
		policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByCluster, MinGroups: 1500, MaxGroups: 1500},
	); placed.Unmet || len(placed.Clusters) != 1500 {
		t.Errorf("%d clusters", len(placed.Clusters))
	}

	// Many small regions come before the five that do.
	for i := range members {
		members[i].Region = fmt.Sprint(i)
		if i >= 3980 {
			members[i].Region = fmt.Sprint("large-", i%5)
		}
	}
	if placed := placeBy(
		policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByRegion, MaxGroups: 5},
		policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByCluster, MinGroups: 20},
	); placed.Unmet || len(placed.Clusters) != 20 {
		t.Errorf("%d clusters", len(placed.Clusters))
	}
}

func randomConstraints(random *rand.Rand) []policyv1alpha1.SpreadConstraint {
	var all []policyv1alpha1.SpreadConstraint
	for _, field := range []policyv1alpha1.SpreadField{
		policyv1alpha1.SpreadByCluster, policyv1alpha1.SpreadByProvider, policyv1alpha1.SpreadByRegion, policyv1alpha1.SpreadByZone,
	} {
		if random.IntN(2) == 0 {
			continue
		}
		c := policyv1alpha1.SpreadConstraint{SpreadByField: field, MinGroups: random.IntN(5)}
		if random.IntN(3) > 0 {
			c.MaxGroups = max(c.MinGroups, 1) + random.IntN(2)
		}
		all = append(all, c)
	}
	return all
}

// randomMembers are up to eight clusters, some without a field.
func randomMembers(random *rand.Rand) []Member {
	var all []Member
	pick := func(prefix string, n int) string {
		if i := random.IntN(n + 1); i > 0 || random.IntN(3) > 0 {
			return fmt.Sprint(prefix, i)
		}
		return ""
	}
	for i := range 1 + random.IntN(8) {
		m := Member{Name: fmt.Sprint("c", i), Provider: pick("p", 2), Region: pick("r", 4)}
		for range random.IntN(3) {
			if zone := pick("z", 5); zone != "" && !slices.Contains(m.Zones, zone) {
				m.Zones = append(m.Zones, zone)
			}
		}
		all = append(all, m)
	}
	return all
}

func subsets(members []Member) [][]Member {
	all := make([][]Member, 1<<len(members))
	for bits := range all {
		for i, m := range members {
			if bits&(1<<i) != 0 {
				all[bits] = append(all[bits], m)
			}
		}
	}
	return all
}

// meets tells by the definition whether clusters meet constraints.
func meets(limits []spreadLimit, set []Member) bool {
	for _, l := range limits {
		groups := map[string]bool{}
		for _, m := range set {
			if len(l.groupsOf(m)) == 0 {
				return false
			}
			for _, group := range l.groupsOf(m) {
				groups[group] = true
			}
		}
		if len(groups) < l.min || l.max > 0 && len(groups) > l.max {
			return false
		}
	}
	return true
}

func membersAt(members []Member, placed Placed) []Member {
	var all []Member
	for _, m := range members {
		if slices.Contains(placed.Clusters, workv1alpha2.TargetCluster{Name: m.Name}) {
			all = append(all, m)
		}
	}
	return all
}

// The clusters that come first leave no others in their regions.
func TestSpreadGivesUpFirstClusters(t *testing.T) {
	var members []Member
	for name, region := range map[string]string{"a": "r1", "b": "r2", "c": "r3", "d": "r3", "e": "r4", "f": "r4"} {
		members = append(members, Member{Name: name, Region: region})
	}
	placed, err := Place(policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{
		{SpreadByField: policyv1alpha1.SpreadByRegion, MinGroups: 2, MaxGroups: 2}, {SpreadByField: policyv1alpha1.SpreadByCluster, MinGroups: 4},
	}}, members, Demand{Replicas: -1}, Placed{})
	if got := describe(placed); err != nil || got != "c d e f" {
		t.Errorf("got %q, %v", got, err)
	}
}
