package rollout

import (
	"testing"

	"github.com/fairlead/fairlead/internal/passage"
)

// TestFirstRolloutIsTheFirst: a plan speaks of the first rollout only before that is complete, whatever else is missing.
func TestFirstRolloutIsTheFirst(t *testing.T) {
	v1, v2 := makeMaterialize, func() maker { return makeMaterialize().image("v2") }
	withoutEnvironmentID := func(m maker) maker { m.Status.EnvironmentID = ""; return m }
	withoutIDs := func(m maker) maker { m.Status.ResourceID = ""; return withoutEnvironmentID(m) }
	cases := map[string]struct {
		scene scene
		first bool
		want  []passage.Action
	}{
		"nothing is known":                     {seeing(t, v1()), true, []passage.Action{ActionIdentify, ActionRequest}},
		"another operator's, at rest":          {seeing(t, withoutEnvironmentID(v1().serving(t, 1, v1()))).foreign(1).complete(), false, []passage.Action{ActionIdentify}},
		"another operator's, and edited since": {seeing(t, withoutEnvironmentID(v2().serving(t, 1, v1()))).foreign(1).complete(), false, []passage.Action{ActionIdentify, ActionRequest}},
		"another operator's, without any ID":   {seeing(t, withoutIDs(v1().serving(t, 1, v1()))), false, []passage.Action{ActionIdentify}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan := Plan(c.scene.Observed, at(0))
			first := false
			for i, step := range plan.Steps {
				first = first || step.Reason.Code == CodeFirst
				if i < len(c.want) && step.Action != c.want[i] {
					t.Errorf("step %d is %s, want %s", i+1, step.Action, c.want[i])
				}
			}
			if len(plan.Steps) < len(c.want) {
				t.Errorf("the plan has %d steps, want %v", len(plan.Steps), c.want)
			}
			if first != c.first {
				t.Errorf("the plan speaks of the first rollout: %t, in %v", first, plan.Steps)
			}
		})
	}
}
