package conversion_test

import (
	"slices"
	"testing"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// The environments with which the round trips begin.
const (
	simplestRequested = "simplest case, applied with requestRollout"
	simplestPlain     = "simplest case, applied without requestRollout"
	simplestNewer     = "simplest case, applied as v1alpha2"
	notPromoting      = "mid-upgrade, but not promoting"
	aboutToPromote    = "already promoting, and not asked yet"
	takesOver         = "already promoting, and it takes over"
	tookOver          = "already promoting, and it leads"
)

func roundTripLegacies() map[string]legacy {
	asked := func(manner environmentd.Manner) legacy {
		l := midRollout(v1alpha2.ReasonPromoting, manner)
		l.asked = true
		return l
	}
	return map[string]legacy{
		simplestRequested: atRest(clientSide),
		simplestPlain:     atRest(clientSide),
		simplestNewer:     atRest(clientSide),
		notPromoting:      midRollout(v1alpha2.ReasonApplying, environmentd.Manner{CatchesUp: true}),
		aboutToPromote:    midRollout(v1alpha2.ReasonPromoting, environmentd.Manner{Lingers: true}),
		takesOver:         asked(environmentd.Manner{Lingers: true}),
		tookOver:          asked(environmentd.Manner{}),
	}
}

// TestStoryExampleRoundTrips has the examples of that name, under their titles.
func TestStoryExampleRoundTrips(t *testing.T) {
	t.Parallel()
	w := storyWorld(t)
	t.Run("Simplest case", func(t *testing.T) {
		t.Parallel()
		cases := map[string]manifest{
			simplestRequested: written(older).withRole().image("v2").with("requestRollout", secondRequest),
			simplestPlain:     written(older).withRole().image("v2"),
			simplestNewer:     written(newer).withRole().image("v2"),
		}
		for name, applied := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				simplestCase(t, w.inheritedAs(t, name), applied)
			})
		}
	})
	t.Run("Existing v1alpha1 resource is mid-upgrade, but not promoting", func(t *testing.T) {
		t.Parallel()
		midUpgrade(t, w.inheritedAs(t, notPromoting))
	})
	t.Run("Existing v1alpha1 resource is mid-upgrade and already promoting", func(t *testing.T) {
		t.Parallel()
		for _, name := range []string{aboutToPromote, takesOver} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				alreadyPromoting(t, w.inheritedAs(t, name))
			})
		}
		t.Run(tookOver, func(t *testing.T) {
			t.Parallel()
			e := w.inheritedAs(t, tookOver)
			e.serves(t, 3, "v2")
			e.tells(t, slices.Concat(takingOver(2), starting(3), takingOver(3))...)
		})
	})
}

func simplestCase(t *testing.T, e *environment, applied manifest) {
	m := e.serves(t, 1, "v1")
	e.untouched(t, e.before)
	e.tells(t)
	if m.Status.RolloutRequestedAt != nil {
		t.Error("a rollout was asked for")
	}

	if err := clientSide(t.Context(), e, applied); err != nil {
		t.Fatal(err)
	}
	after := e.serves(t, 2, "v2")
	e.tells(t, slices.Concat(starting(2), takingOver(2))...)
	if after.Status.LastCompletedRolloutHash == m.Status.LastCompletedRolloutHash {
		t.Error("two specs have one hash")
	}
	if after.Spec.EnvironmentID != thirdRequest {
		t.Errorf("environmentId is %q by now", after.Spec.EnvironmentID)
	}
}

// midUpgrade: what the other operator was about to roll out is begun anew, for nobody knows what it is made of.
func midUpgrade(t *testing.T, e *environment) {
	replaced := slices.Concat([]string{"generation 2 is gone"}, starting(2))
	e.tells(t, replaced...)
	m := e.says(t, v1alpha2.ReasonApplying)
	if s := m.Status; s.LastCompletedRolloutHash != "" || s.RequestedRolloutHash != e.hash(t, m) || s.ActiveGeneration != 1 {
		t.Errorf("of the hash %s: %+v", e.hash(t, m), s)
	}
	if asked := e.daemon(2).Asked(); len(asked) > 0 {
		t.Errorf("it was asked: %v", asked)
	}
	e.daemon(2).CatchUp()
	e.serves(t, 2, "v2")
	e.tells(t, slices.Concat(replaced, takingOver(2))...)
}

// alreadyPromoting: what has begun is completed as it is, and then the spec is rolled out once more.
func alreadyPromoting(t *testing.T, e *environment) {
	m := e.says(t, v1alpha2.ReasonPromoting)
	wait.Until(t, e.lingers(2))
	if s := m.Status; s.LastCompletedRolloutHash != "" || s.RequestedRolloutHash != "" || s.ActiveGeneration != 1 {
		t.Errorf("while it takes over: %+v", s)
	}
	e.untouched(t, e.before)
	e.tells(t)
	e.daemon(2).Behave(environmentd.Manner{})
	e.serves(t, 3, "v2")
	e.tells(t, slices.Concat(takingOver(2), starting(3), takingOver(3))...)
}
