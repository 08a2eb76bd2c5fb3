package forecast

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// Effect is how an entry of a policy changes.
type Effect string

// The effects.
const (
	Stops Effect = "stops"
	// Shrinks: only a part still applies. Grows is the reverse.
	Shrinks Effect = "shrinks"
	Grows   Effect = "grows"
	Starts  Effect = "starts"
)

// PolicyChange is an entry of a policy that stops or starts to apply.
type PolicyChange struct {
	Kind   string `json:"kind"`
	Policy string `json:"policy"`
	Entry  int    `json:"entry"`
	Effect Effect `json:"effect"`
	// Destination is what it applied to, or will apply to.
	Destination string `json:"destination"`
	// Calls are the listeners that lead to another destination.
	Calls []string `json:"calls,omitempty"`
	Why   string   `json:"why"`
}

// entry names an entry of a policy.
type entry struct {
	kind, policy string
	index        int
}

func (e entry) change(effect Effect, cluster, why string, calls []string) PolicyChange {
	return PolicyChange{Kind: e.kind, Policy: e.policy, Entry: e.index, Effect: effect, Destination: destinationName(cluster), Calls: calls, Why: why}
}

// policyDecisions are the decisions on each destination, by cluster.
type policyDecisions map[string]map[entry]policy.Decision

func policyDecisionsOf(explanations []snapshot.Explanation) policyDecisions {
	all := policyDecisions{}
	for _, e := range explanations {
		decided := map[entry]policy.Decision{}
		for _, d := range e.Decisions {
			decided[entry{d.Kind, d.Policy, d.Entry}] = d
		}
		all[e.Destination.Key.Cluster()] = decided
	}
	return all
}

// applying returns the entries that apply to any of the clusters, with that cluster.
func (r policyDecisions) applying(clusters []string) map[entry]string {
	found := map[entry]string{}
	for _, name := range clusters {
		for e, d := range r[name] {
			if _, known := found[e]; d.Applies && !known {
				found[e] = name
			}
		}
	}
	return found
}

// why returns the reason of the decision on an entry for any of the clusters.
func (r policyDecisions) why(e entry, clusters []string) string {
	for _, name := range clusters {
		if d, ok := r[name][e]; ok {
			return d.Why
		}
	}
	return ""
}

// diffEntries returns the entries that stop or start to apply when clusters replace others.
func diffEntries(before, after policyDecisions, from, to, calls []string) []PolicyChange {
	var changes []PolicyChange
	was, is := before.applying(from), after.applying(to)
	for e, cluster := range was {
		now, still := is[e]
		switch {
		case !still:
			changes = append(changes, e.change(Stops, cluster, cmp.Or(after.why(e, to), "does not target "+strings.Join(destinationNames(to), ", ")), calls))
		case after[now][e].InPart && !before[cluster][e].InPart:
			changes = append(changes, e.change(Shrinks, now, after[now][e].Why, calls))
		case before[cluster][e].InPart && !after[now][e].InPart:
			changes = append(changes, e.change(Grows, now, after[now][e].Why, calls))
		}
	}
	for e, cluster := range is {
		if _, already := was[e]; !already {
			changes = append(changes, e.change(Starts, cluster, after[cluster][e].Why, calls))
		}
	}
	return changes
}

// comparePolicies returns the entries that stop or start to apply: to a listener that leads elsewhere, to a destination
// that stays, and to any destination.
func comparePolicies(changes []Change, before, after policyDecisions) []PolicyChange {
	var found []PolicyChange
	moved := map[string]bool{}
	for _, c := range changes {
		if c.Kind != Listener || c.Action != Changes || slices.Equal(c.from, c.to) {
			continue
		}
		found = append(found, diffEntries(before, after, c.from, c.to, []string{c.Name})...)
		for _, name := range slices.Concat(c.from, c.to) {
			moved[name] = true
		}
	}
	everBefore, everAfter := before.applying(slices.Collect(maps.Keys(before))), after.applying(slices.Collect(maps.Keys(after)))
	forEachName(before, after, func(name string, was, is *map[entry]policy.Decision) {
		one := []string{name}
		switch {
		case was != nil && is != nil:
			found = append(found, diffEntries(before, after, one, one, nil)...)
		case moved[name]:
		case is == nil:
			for e := range before.applying(one) {
				if _, still := everAfter[e]; !still {
					found = append(found, e.change(Stops, name, "targets no destination that remains", nil))
				}
			}
		default:
			for e := range after.applying(one) {
				if _, already := everBefore[e]; !already {
					found = append(found, e.change(Starts, name, after[name][e].Why, nil))
				}
			}
		}
	})
	return mergeChanges(found)
}

// mergeChanges merges the same change of several listeners.
func mergeChanges(changes []PolicyChange) []PolicyChange {
	effects := []Effect{Stops, Shrinks, Grows, Starts}
	compare := func(a, b PolicyChange) int {
		return cmp.Or(
			cmp.Compare(slices.Index(effects, a.Effect), slices.Index(effects, b.Effect)),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Destination, b.Destination),
		)
	}
	slices.SortFunc(changes, compare)
	once := []PolicyChange{}
	for _, c := range changes {
		if last := len(once) - 1; last >= 0 && compare(once[last], c) == 0 {
			once[last].Calls = append(once[last].Calls, c.Calls...)
			continue
		}
		once = append(once, c)
	}
	for i := range once {
		once[i].Calls = sortedUnique(once[i].Calls)
	}
	return once
}

func destinationName(cluster string) string { return model.ParseCluster(cluster).String() }

func destinationNames(clusters []string) []string {
	var all []string
	for _, name := range clusters {
		all = append(all, destinationName(name))
	}
	return all
}
