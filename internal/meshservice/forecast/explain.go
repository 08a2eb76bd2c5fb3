package forecast

import (
	"fmt"
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
)

// UnknownConsumerError is about a consumer that a mesh does not have.
type UnknownConsumerError struct {
	Mesh, Consumer string
	// Known are those that it has.
	Known []string
}

// Error names the consumer.
func (e UnknownConsumerError) Error() string {
	return fmt.Sprintf("no Dataplane of Mesh %s is part of %s", e.Mesh, e.Consumer)
}

// Policies are the policy decisions for a proxy.
type Policies struct {
	Dataplane    string        `json:"dataplane"`
	Mesh         string        `json:"mesh"`
	Destinations []Destination `json:"destinations"`
	Notes        []string      `json:"notes,omitempty"`
}

// Destination is a destination of a proxy, with the policy decisions.
type Destination struct {
	Name     string            `json:"name"`
	Cluster  string            `json:"cluster"`
	Policies []policy.Decision `json:"policies"`
}

// Explain returns which policies apply to the destinations of a Dataplane, and why others do not.
func (w *MeshState) Explain(d *kumav1alpha1.Dataplane) Policies {
	id := desired.ProxyOf(d, w.Where)
	found := Policies{Dataplane: d.Namespace + "/" + d.Name, Mesh: w.Mesh.Name, Destinations: []Destination{}, Notes: slices.Clone(w.notes)}
	engine := w.engine(w.Mesh, w.meshServices, consumers.Switched(w.Mesh))
	for _, p := range engine.DataplaneProblems(d) {
		found.Notes = append(found.Notes, fmt.Sprintf("%s: %s: %s.", p.Object, p.Field, p.Message))
	}
	for _, e := range engine.Explain(id) {
		found.Destinations = append(found.Destinations, Destination{
			Name: e.Destination.Key.String(), Cluster: e.Destination.Key.Cluster(), Policies: append([]policy.Decision{}, e.Decisions...),
		})
	}
	return found
}
