package policy

import (
	"cmp"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// spread selects clusters by the spread constraints of a placement: as many as these allow, those where the resource is before
// others, and by room those with the most of it. If the constraints cannot be met, the resource stays where it is. Replicas that are
// divided by static weights follow the weights alone.
func spread(placement policyv1alpha1.Placement, targets []Member, demand Demand, now Placed) (selected []Member, unmet bool) {
	constraints, _ := spreadLimits(placement.SpreadConstraints)
	byRoom := placement.DividesByRoom() && demand.Replicas >= 0
	if len(constraints) == 0 || placement.Divides() && !byRoom {
		return targets, false
	}
	ordered := targets
	if byRoom {
		ordered = slices.Clone(targets)
		slices.SortStableFunc(ordered, func(a, b Member) int { return cmp.Compare(roomIn(b, demand), roomIn(a, demand)) })
	}
	var candidates []Member
	for _, there := range []bool{true, false} {
		for _, m := range ordered {
			if model.HasCluster(now.Clusters, m.Name) == there && hasGroups(constraints, m) {
				candidates = append(candidates, m)
			}
		}
	}
	// The first cluster decides which groups are left for the others: if its groups do not do, another one is the first.
	for first := range candidates {
		order := append([]Member{candidates[first]}, slices.Delete(slices.Clone(candidates), first, first+1)...)
		if chosen := selectSpread(constraints, order); chosen != nil {
			return slices.DeleteFunc(targets, func(m Member) bool {
				return !slices.ContainsFunc(chosen, func(c Member) bool { return c.Name == m.Name })
			}), false
		}
	}
	return slices.DeleteFunc(targets, func(m Member) bool { return !model.HasCluster(now.Clusters, m.Name) }), true
}

// spreadLimit is how many groups a field may make.
type spreadLimit struct {
	field policyv1alpha1.SpreadField
	// max is 0 for any number.
	min, max int
}

func spreadLimits(constraints []policyv1alpha1.SpreadConstraint) ([]spreadLimit, error) {
	var all []spreadLimit
	for i, c := range constraints {
		limit := spreadLimit{c.SpreadByField, max(c.MinGroups, 1), c.MaxGroups}
		if limit.field == "" {
			limit.field = policyv1alpha1.SpreadByCluster
		}
		path := fmt.Sprintf("spec.placement.spreadConstraints[%d]", i)
		switch {
		case c.MinGroups < 0 || c.MaxGroups < 0:
			return nil, fmt.Errorf("%s has a negative number of groups: write 0 or more", path)
		case limit.max > 0 && limit.max < limit.min:
			return nil, fmt.Errorf("%s has maxGroups %d and minGroups %d: write a maxGroups of at least %d", path, c.MaxGroups, limit.min, limit.min)
		case slices.ContainsFunc(all, func(l spreadLimit) bool { return l.field == limit.field }):
			return nil, fmt.Errorf("%s is a second constraint by %s: remove one of them", path, limit.field)
		}
		all = append(all, limit)
	}
	return all, nil
}

// groupsOf are the groups of a field that a cluster is in.
func (l spreadLimit) groupsOf(m Member) []string {
	if l.field == policyv1alpha1.SpreadByCluster {
		return []string{m.Name}
	}
	return fieldOf(m, l.field)
}

// hasGroups tells whether a cluster is in a group of every constraint.
func hasGroups(limits []spreadLimit, m Member) bool {
	return !slices.ContainsFunc(limits, func(l spreadLimit) bool { return len(l.groupsOf(m)) == 0 })
}

// selectSpread takes clusters in order, first those that bring a group which is still missing, and then all that no limit excludes.
// It is nil if groups are missing at the end.
func selectSpread(limits []spreadLimit, order []Member) []Member {
	var chosen []Member
	groups := make([]map[string]bool, len(limits))
	for i := range groups {
		groups[i] = map[string]bool{}
	}
	added := func(i int, m Member) int {
		n := 0
		for _, group := range limits[i].groupsOf(m) {
			if !groups[i][group] {
				n++
			}
		}
		return n
	}
	for _, missingOnly := range []bool{true, false} {
		for _, m := range order {
			if slices.ContainsFunc(chosen, func(c Member) bool { return c.Name == m.Name }) {
				continue
			}
			fits, brings := true, false
			for i, l := range limits {
				n := added(i, m)
				fits = fits && (l.max == 0 || len(groups[i])+n <= l.max)
				brings = brings || n > 0 && len(groups[i]) < l.min && l.field != policyv1alpha1.SpreadByCluster
			}
			if !fits || missingOnly && !brings {
				continue
			}
			chosen = append(chosen, m)
			for i, l := range limits {
				for _, group := range l.groupsOf(m) {
					groups[i][group] = true
				}
			}
		}
	}
	for i, l := range limits {
		if len(groups[i]) < l.min {
			return nil
		}
	}
	return chosen
}
