package forecast

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
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

// exclusiveFindings are what keeps mode Exclusive from coming into force: consumers that it would leave with nothing, and in
// universal values of kuma.io/service that cannot be the name of a MeshService.
func (w *MeshState) exclusiveFindings(today, then *snapshot.Engine) []Finding {
	const holds = "; mode Everywhere is in force until then"
	var found []Finding
	alone, nameless := sets.New[string](), sets.New[string]()
	for _, p := range then.Proxies(w.Mesh.Name) {
		if !p.Reach.ListsNone() && then.Destinations(p.ID) == 0 && today.Destinations(p.ID) > 0 {
			alone.Insert(p.Consumer)
		}
	}
	for _, name := range sets.List(alone) {
		found = append(found, Finding{Object: name, Why: "the consumer would reach nothing in mode Exclusive" + holds, Remedy: desired.StrandedRemedy, New: true})
	}
	for _, d := range w.dataplanes {
		for _, service := range desired.ServicesOf(d, w.rulesOf(d.Namespace), w.Where) {
			if w.Where.IsUniversal() && !desired.IsMeshServiceName(service) {
				nameless.Insert(service)
			}
		}
	}
	for _, name := range sets.List(nameless) {
		found = append(found, Finding{
			Object: kumav1alpha1.TagService + " " + name, Why: "no MeshService is generated for the value, which is not valid as its name" + holds,
			Remedy: "use at most 63 lower-case letters, digits and '-'", New: true,
		})
	}
	return found
}

// blockedFindings are MeshServices that Fairlead does not manage, with the name of one that it would generate.
func (w *MeshState) blockedFindings(mode model.Mode) []Finding {
	found := []Finding{}
	if mode == model.Disabled {
		return found
	}
	for _, name := range w.blockedServices() {
		found = append(found, Finding{
			Object: kumav1alpha1.MeshServiceKind + " " + name, Why: "the MeshService is not managed by Fairlead, so none is generated, and the mesh goes on without it",
			Remedy: "delete the MeshService if Fairlead should generate it; one that Kuma has generated is taken over by an operator with --take-over meshservice", New: w.Mesh.Mode() == kumav1alpha1.ModeDisabled,
		})
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
