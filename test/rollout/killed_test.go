package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/environmentd"
)

// TestOperatorKilled has a cluster of its own, for each of its parts ends the operator.
func TestOperatorKilled(t *testing.T) {
	t.Parallel()
	w := ownWorld(t)
	t.Run("between Promoting and the request", func(t *testing.T) { killedBeforeThePost(t, w) })
	t.Run("right after the request", func(t *testing.T) { killedAfterThePost(t, w) })
	t.Run("and the time runs on", func(t *testing.T) { killedBeforeTheTimeout(t, w) })
	t.Run("with nothing left to do", func(t *testing.T) { nothingLeftToDo(t, w) })
	t.Run("at every write", func(t *testing.T) { crash(t, w) })
}

// parked is an environment whose second generation waits for a person, and whose operator has ended.
func (w *world) parked(t testing.TB) *environment {
	t.Helper()
	l := w.live(t)
	e := w.deployed(t)
	e.edit(t, image("v2"), strategy(v1alpha2.RolloutManuallyPromote))
	e.says(t, v1alpha2.ReasonReadyToPromote)
	l.end()
	return e
}

// promotes gives a person's word to an operator that is killed by what the rule says.
func (e *environment) promotes(t testing.TB, rule faults.Rule) {
	t.Helper()
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = m.Status.RequestedRolloutHash })
	l := e.begin(faults.New(rule))
	l.showTo(t)
	select {
	case <-l.in.Dead():
	case <-time.After(patience):
		t.Error("the operator does not get there")
	}
	l.end()
	if reason := condition(e.now(t)).Reason; reason != string(v1alpha2.ReasonPromoting) {
		t.Fatalf("it is %s", reason)
	}
}

func killedBeforeThePost(t *testing.T, w *world) {
	e := w.parked(t)
	watched, next := e.watch(t), e.daemon(2)
	e.promotes(t, faults.Rule{
		// What follows this question is the note that there is no way back.
		Match: func(r faults.Request) bool {
			return r.Namespace == e.namespace && r.Kind() == "materializes.materialize.cloud/status" && slices.Contains(next.Asked(), "skip-catchup")
		},
		Nth: 1, Action: faults.CutAfter(),
	})
	if diff := cmp.Diff([]string{"skip-catchup"}, next.Asked()); diff != "" {
		t.Fatal(diff)
	}
	e.edit(t, image("v3"))
	w.live(t)
	m := e.says(t, v1alpha2.ReasonReadyToPromote)
	watched.check(t)
	if m.Status.ActiveGeneration != 2 || m.Status.LastCompletedRolloutEnvironmentdImageRef != "materialize/environmentd:v2" {
		t.Errorf("completed is not what was promoted: %+v", m.Status)
	}
	if diff := cmp.Diff([]string{"skip-catchup", "promote"}, next.Asked()); diff != "" {
		t.Error(diff)
	}
}

func killedAfterThePost(t *testing.T, w *world) {
	e := w.parked(t)
	watched, next := e.watch(t), e.daemon(2)
	e.promotes(t, faults.Rule{
		Match:  func(r faults.Request) bool { return r.Writes() && slices.Contains(next.Asked(), "promote") },
		Nth:    1,
		Action: faults.CutBefore(),
	})
	if next.Status() != environmentd.IsLeader {
		t.Fatalf("it is %s", next.Status())
	}
	w.live(t)
	e.serves(t, 2, "v2")
	watched.check(t)
	if diff := cmp.Diff([]string{"skip-catchup", "promote"}, next.Asked()); diff != "" {
		t.Error(diff)
	}
}

func killedBeforeTheTimeout(t *testing.T, w *world) {
	first := w.live(t)
	e := w.catchingUp(t, func(m *v1alpha2.Materialize) { m.Spec.RolloutRequestTimeout = "15s" })
	requested := e.now(t).Status.RolloutRequestedAt
	first.kill()
	over := requested.Add(15 * time.Second)
	eventually(t, func(context.Context) error {
		if left := time.Until(over); left > 0 {
			return fmt.Errorf("the time is over in %s", left)
		}
		return nil
	})
	w.live(t)
	if m := e.says(t, v1alpha2.ReasonRolloutTimeout); !m.Status.RolloutRequestedAt.Equal(requested) {
		t.Error("a restart was taken for a request")
	}
}

// nothingLeftToDo: whatever state environments are in, an operator that starts writes nothing.
func nothingLeftToDo(t *testing.T, w *world) {
	first := w.live(t)
	serving, sentinel := w.deployed(t), w.deployed(t)
	waiting := w.deployed(t)
	waiting.edit(t, image("v2"), strategy(v1alpha2.RolloutManuallyPromote))
	waiting.says(t, v1alpha2.ReasonReadyToPromote)
	late := w.catchingUp(t, func(m *v1alpha2.Materialize) { m.Spec.RolloutRequestTimeout = "15s" })
	late.says(t, v1alpha2.ReasonRolloutTimeout)
	eventually(t, func(context.Context) error {
		if late.set(t, 2) != nil {
			return fmt.Errorf("generation 2 is still there")
		}
		return nil
	})
	all := []*environment{serving, waiting, late}
	before := make([]*v1alpha2.Materialize, len(all))
	for i, e := range all {
		before[i] = e.now(t)
	}
	first.end()

	second := w.live(t)
	// When it has done this, it has looked at the others.
	sentinel.edit(t, image("v2"))
	sentinel.serves(t, 2, "v2")
	for _, entry := range second.in.Log() {
		if entry.Namespace != sentinel.namespace {
			t.Errorf("it wrote %s", entry.Request)
		}
	}
	for i, e := range all {
		if diff := cmp.Diff(before[i], e.now(t)); diff != "" {
			t.Error(diff)
		}
	}
}
