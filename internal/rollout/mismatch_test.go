package rollout

import (
	"slices"
	"testing"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// TestUpToDateIsNeverWrong has a status that takes the spec for rolled out, beside a generation that runs another one.
func TestUpToDateIsNeverWrong(t *testing.T) {
	v1, v2 := makeMaterialize, func() maker { return makeMaterialize().image("v2") }
	taken := func() scene { return seeing(t, v2().serving(t, 1, v2())) }
	theirs := func(s scene, image string) scene {
		s = s.foreign(1)
		s.Generations[1].StatefulSet.Spec.Template.Spec.Containers[0].Image = image
		return s
	}
	cases := map[string]struct {
		scene scene
		want  v1alpha2.Reason
	}{
		"another operator's generation runs the spec":      {theirs(taken(), "materialize/environmentd:v2").complete(), v1alpha2.ReasonApplied},
		"another operator's generation runs another image": {theirs(taken(), "materialize/environmentd:v1").complete(), v1alpha2.ReasonApplying},
		"the record is of the spec":                        {taken().generation(1, v2()).complete(), v1alpha2.ReasonApplied},
		"the record is of another spec":                    {taken().generation(1, v1()).complete(), v1alpha2.ReasonApplying},
		"nothing runs, and another image ran last": {func() scene {
			s := taken()
			s.Materialize.Status.LastCompletedRolloutEnvironmentdImageRef = "materialize/environmentd:v1"
			return s.complete()
		}(), v1alpha2.ReasonApplying},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := c.scene.Observed
			d := decide(o, at(100_000))
			if got := v1alpha2.Reason(assess(o, d, applyErrors{}, at(100_000)).reason.Code); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
			if got, want := slices.ContainsFunc(d.Steps, func(s passage.Step) bool { return s.Action == ActionRequest }), c.want == v1alpha2.ReasonApplying; got != want {
				t.Errorf("a rollout is requested: %t, in %v", got, d.Steps)
			}
			if c.want == v1alpha2.ReasonApplying {
				o.Materialize.Status = statusAfter(o, ActionRequest, nil, at(100_000))
				if o.Hash == o.Completed() || !o.Underway() || o.Expired(at(100_001)) {
					t.Errorf("after the request it is not underway: %+v", o.Materialize.Status)
				}
				if d := decide(o, at(100_001)); slices.ContainsFunc(d.Steps, func(s passage.Step) bool { return s.Action == ActionRequest }) {
					t.Errorf("the rollout is requested again: %v", d.Steps)
				}
			}
			if got, want := NewForecast(o, nil, at(0)).RollsOut, c.want == v1alpha2.ReasonApplying; got != want {
				t.Errorf("the forecast says that it rolls out: %t", got)
			}
		})
	}
}
