package forecast

import (
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/successor"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// Finding needs a decision of a person.
type Finding struct {
	// Object is a policy, as kind and namespace/name.
	Object string `json:"object"`
	Field  string `json:"field"`
	Why    string `json:"why"`
	Remedy string `json:"remedy,omitempty"`
	// New says that only the scenario has it.
	New bool `json:"new,omitempty"`
}

// tagRouteFindings are the routes that refer to tags.
func tagRouteFindings(policies []kumav1alpha1.Policy, mode model.Mode, ports successor.Ports) []Finding {
	found := []Finding{}
	if mode == model.Disabled {
		return found
	}
	for _, p := range policies {
		for _, s := range successor.TagReferencesIn(p, ports) {
			found = append(found, Finding{Object: s.Route, Field: s.Field, Why: s.Why(mode), Remedy: s.Remedy(ports)})
		}
	}
	return found
}

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
