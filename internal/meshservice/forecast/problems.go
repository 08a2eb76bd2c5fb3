package forecast

import (
	"slices"

	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// problemsOf are what cannot be sent to proxies as it is written, and what refers to nothing, with whether that is so already.
// Routes that are to be looked at are told of there.
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
