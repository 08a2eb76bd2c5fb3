package conversion_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// The environments that another operator has left in the middle of a rollout, besides those of the round trips.
const (
	firstApplying    = "the first rollout"
	parked           = "ready to promote, with a promotion asked for in the old way"
	withdrawn        = "changed back before it is ready"
	firstPromoting   = "the first rollout, promoting"
	changedPromoting = "changed while it is promoting"
)

func midRolloutLegacies() map[string]legacy {
	manual := midRollout(v1alpha2.ReasonReadyToPromote, environmentd.Manner{})
	manual.manifest = manual.manifest.with("rolloutStrategy", string(v1alpha2.RolloutManuallyPromote)).with("forcePromote", secondRequest)
	return map[string]legacy{
		firstApplying:    firstRollout(v1alpha2.ReasonApplying, environmentd.Manner{}),
		parked:           manual,
		withdrawn:        midRollout(v1alpha2.ReasonApplying, environmentd.Manner{CatchesUp: true}),
		firstPromoting:   firstRollout(v1alpha2.ReasonPromoting, environmentd.Manner{Lingers: true}),
		changedPromoting: midRollout(v1alpha2.ReasonPromoting, environmentd.Manner{Lingers: true}),
	}
}

// catchesUp tells whether the operator waits for a generation to catch up.
func (e *environment) catchesUp(generation int64) func(context.Context) error {
	return e.messageEnds(generation, "environmentd has not caught up yet")
}

// lingers tells whether the operator waits for a generation to take over.
func (e *environment) lingers(generation int64) func(context.Context) error {
	return e.messageEnds(generation, "environmentd is taking over leadership")
}

func (e *environment) messageEnds(generation int64, ending string) func(context.Context) error {
	return func(ctx context.Context) error {
		m, err := e.get(ctx)
		if err != nil {
			return err
		}
		want := fmt.Sprintf("StatefulSet %s/%s: %s", e.namespace, nameOf(m.Status.ResourceID, generation), ending)
		if got := condition(m).Message; len(got) < len(want) || got[len(got)-len(want):] != want {
			return fmt.Errorf("it says %q and not %q", got, want)
		}
		return nil
	}
}

func firstIsBegunAnew(t *testing.T, e *environment) {
	e.serves(t, 1, "v1")
	e.tells(t, slices.Concat([]string{"generation 1 is gone"}, firstDeploy)...)
}

// parkedIsBegunAnew: what promoted a rollout in the old way is about no rollout any more.
func parkedIsBegunAnew(t *testing.T, e *environment) {
	replaced := slices.Concat([]string{"generation 2 is gone"}, starting(2))
	e.tells(t, replaced...)
	m := e.says(t, v1alpha2.ReasonReadyToPromote)
	if m.Spec.ForcePromote != secondRequest {
		t.Errorf("forcePromote is %q", m.Spec.ForcePromote)
	}
	if asked := e.daemon(2).Asked(); len(asked) > 0 {
		t.Errorf("it was asked: %v", asked)
	}
	// Those who still write v1alpha1 find the hash there, too.
	e.patch(t, older, fmt.Sprintf(`{"spec":{"forcePromote":%q}}`, m.Status.RequestedRolloutHash))
	e.serves(t, 2, "v2")
	e.tells(t, slices.Concat(replaced, takingOver(2))...)
}

// changedWhileBegunAnew: nobody knows what it is that serves, so even what it was is rolled out once.
func changedWhileBegunAnew(t *testing.T, e *environment) {
	replaced := slices.Concat([]string{"generation 2 is gone"}, starting(2))
	e.tells(t, replaced...)
	wait.Until(t, e.catchesUp(2))
	if err := clientSide(t.Context(), e, written(older).withRole()); err != nil {
		t.Fatal(err)
	}
	e.tells(t, slices.Concat(replaced, replaced)...)
	e.daemon(2).CatchUp()
	e.serves(t, 2, "v1")
	e.tells(t, slices.Concat(replaced, replaced, takingOver(2))...)
}

func firstIsCompleted(t *testing.T, e *environment) {
	e.says(t, v1alpha2.ReasonPromoting)
	wait.Until(t, e.lingers(1))
	e.untouched(t, e.before)
	e.tells(t)
	e.daemon(1).Behave(environmentd.Manner{})
	e.serves(t, 2, "v1")
	e.tells(t, slices.Concat([]string{"users are led to generation 1"}, starting(2), takingOver(2))...)
}

// changedWhilePromoting: the spec has no say in what takes over already.
func changedWhilePromoting(t *testing.T, e *environment) {
	e.says(t, v1alpha2.ReasonPromoting)
	wait.Until(t, e.lingers(2))
	if err := clientSide(t.Context(), e, written(older).withRole().image("v3").with("requestRollout", thirdRequest)); err != nil {
		t.Fatal(err)
	}
	if m := e.says(t, v1alpha2.ReasonPromoting); m.Status.RequestedRolloutHash != "" || m.Status.LastCompletedRolloutHash != "" {
		t.Errorf("while it takes over: %+v", m.Status)
	}
	e.untouched(t, e.before)
	e.daemon(2).Behave(environmentd.Manner{})
	e.serves(t, 3, "v3")
	e.tells(t, slices.Concat(takingOver(2), starting(3), takingOver(3))...)
}
