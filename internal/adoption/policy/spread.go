package policy

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
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
	there := sets.New[string]()
	for _, c := range now.Clusters {
		there.Insert(c.Name)
	}
	var candidates []Member
	for _, before := range []bool{true, false} {
		for _, m := range ordered {
			if there.Has(m.Name) == before && hasGroups(constraints, m) {
				candidates = append(candidates, m)
			}
		}
	}
	chosen := selectSpread(constraints, candidates)
	if chosen == nil {
		return slices.DeleteFunc(targets, func(m Member) bool { return !there.Has(m.Name) }), true
	}
	slices.SortFunc(chosen, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return chosen, false
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
