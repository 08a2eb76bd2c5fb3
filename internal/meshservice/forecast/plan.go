package forecast

import (
	"fmt"
	"strings"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/passage"
)

// The actions of the plan.
const (
	ActionSet         passage.Action = "set"
	ActionCreate      passage.Action = "create"
	ActionRemove      passage.Action = "remove"
	ActionReconfigure passage.Action = "reconfigure"
)

// Plan returns the forecast as a plan.
func (f Forecast) Plan() passage.Plan {
	subject := passage.Object{APIVersion: kumav1alpha1.GroupVersion.String(), Kind: kumav1alpha1.MeshKind, Name: f.Mesh}
	plan := passage.Plan{Passage: "meshservice", Subject: subject, Target: string(f.To), Steps: []passage.Step{}}
	add := func(action passage.Action, object passage.Object, code, format string, args ...any) *passage.Step {
		plan.Steps = append(plan.Steps, passage.Step{Object: object, Action: action, State: passage.Pending, Reason: passage.Because(code, format, args...)})
		return &plan.Steps[len(plan.Steps)-1]
	}
	if f.From != f.To {
		step := add(ActionSet, subject, "AskedFor", "the mode to compare with")
		step.From, step.To = string(f.From), string(f.To)
	}
	service := func(name string) passage.Object {
		namespace, name, _ := strings.Cut(name, "/")
		return passage.Object{APIVersion: subject.APIVersion, Kind: kumav1alpha1.MeshServiceKind, Namespace: namespace, Name: name}
	}
	for _, name := range f.Made {
		add(ActionCreate, service(name), "Generated", "generated in mode %s", f.To)
	}
	for _, name := range f.Removed {
		add(ActionRemove, service(name), "NotGenerated", "not generated in mode %s", f.To)
	}
	for _, g := range f.Groups {
		for _, c := range g.Consumers {
			add(ActionReconfigure, consumerObject(c.Name), "Affected", "%s", g.summary(c.Proxies))
		}
	}
	return plan
}

func (g Group) summary(proxies int) string {
	moved := g.Moved()
	return fmt.Sprintf("for %d of its proxies: %d listeners lead to other destinations, %d other changes, %d policy changes",
		proxies, moved, len(g.Changes)-moved, len(g.Policies))
}

// consumerObject is the object of a consumer.
func consumerObject(name string) passage.Object {
	object := consumers.ObjectOf(name)
	if object.Kind == kumav1alpha1.DataplaneKind && object.Namespace == "" {
		object.APIVersion = kumav1alpha1.GroupVersion.String()
	}
	return object
}
