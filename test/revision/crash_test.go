package revision_test

import (
	"testing"

	"github.com/fairlead/fairlead/internal/faults"
)

// TestCrashWhileInstalling kills the operator at its writes while it brings a control plane and a tag from nothing.
func TestCrashWhileInstalling(t *testing.T) {
	t.Parallel()
	w := newHub(t)
	w.anchor(t)
	disturb(t, faults.Scenario{Config: w.Config(), Setup: func(t testing.TB) faults.World {
		return w.newStory(t, "v1.31.0").play(t)
	}})
}

// TestCrashWhileUpgrading kills the operator at its writes while it upgrades a control plane in place, and with it the
// tag. Some objects come with the new version, and some go.
func TestCrashWhileUpgrading(t *testing.T) {
	t.Parallel()
	w := newHub(t)
	w.anchor(t)
	var s *story
	disturb(t, faults.Scenario{
		Config: w.Config(),
		Setup: func(t testing.TB) faults.World {
			s = w.newStory(t, "v1.24.0")
			s.next = "v1.31.0"
			return s.play(t)
		},
		Counted: func(r faults.Request) bool { return faults.Write(r) && s.upgrading.Load() },
	}, "delete 1")
}

// disturb tells a story again and again, each time with another of its writes disturbed: with some at which much changes,
// or with many in full, which takes minutes and is for `make e2e-full`.
func disturb(t *testing.T, scenario faults.Scenario, turns ...string) {
	t.Helper()
	// To be killed before a write is, to what comes after, the same as to be killed after the one before it.
	killed := faults.CutAfter()
	actions := map[string][]faults.Action{
		// Helm's record is there and nothing else, some of the objects are, the last record says that all of them are.
		"secrets 1":          {killed},
		"deployments.apps 1": {killed, faults.InternalError()},
		"secrets -1":         {killed, faults.Conflict()},
	}
	for _, turn := range turns {
		actions[turn] = append(actions[turn], killed)
	}
	choose := faults.At(t, actions)
	if faults.Full() {
		choose = func(k int, _ faults.Log) []faults.Action {
			if k%4 == 0 {
				return []faults.Action{killed, faults.Conflict(), faults.InternalError()}
			}
			return []faults.Action{killed}
		}
	}
	faults.DisturbWrites(t, scenario, choose)
}
