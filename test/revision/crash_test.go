package revision_test

import (
	"os"
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
	})
}

// disturb tells a story again and again, each time with another of its writes disturbed: with few of them, or with many
// in full, which takes minutes and is for `make e2e-full`.
func disturb(t *testing.T, scenario faults.Scenario) {
	every := func(nth, inFull int) func(int, faults.Log) bool {
		if os.Getenv("FAIRLEAD_TESTS") == "full" {
			nth = inFull
		}
		return func(k int, _ faults.Log) bool { return k%nth == 0 }
	}
	t.Run("killed", func(t *testing.T) {
		scenario.Pick = every(7, 1)
		// To be killed before a write is, to what comes after, the same as to be killed after the one before it.
		faults.DisturbEveryWrite(t, scenario, faults.CutAfter())
	})
	t.Run("refused", func(t *testing.T) {
		scenario.Pick = every(17, 4)
		faults.DisturbEveryWrite(t, scenario, faults.Conflict(), faults.InternalError())
	})
}
