package forecast

import (
	"slices"

	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// problemsOf returns the problems of a scenario, and whether they are new. Routes that are listed as findings are left out.
func problemsOf(today, then []snapshot.Problem, routes []Finding) []Finding {
	found := []Finding{}
	for _, p := range then {
		if slices.ContainsFunc(routes, func(f Finding) bool { return f.Object == p.Object && f.Field == p.Field }) {
			continue
		}
		found = append(found, Finding{Object: p.Object, Field: p.Field, Why: p.Message, New: !slices.Contains(today, p)})
	}
	return found
}
