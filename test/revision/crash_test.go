package revision_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/internal/faults"
)

// TestCrashWhileInstalling kills the operator at its writes while it brings a control plane and a tag from nothing.
func TestCrashWhileInstalling(t *testing.T) {
	inFull(t)
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
	inFull(t)
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

// inFull leaves a test that takes minutes to `make e2e-full`.
func inFull(t *testing.T) {
	t.Helper()
	if os.Getenv("FAIRLEAD_TESTS") != "full" {
		t.Skip("one of the long tests, which `make e2e-full` runs")
	}
}

func disturb(t *testing.T, scenario faults.Scenario) {
	t.Run("killed", func(t *testing.T) {
		// To be killed before a write is, to what comes after, the same as to be killed after the one before it. Of the
		// writes that are neither where a release begins nor where it ends, every second has to do.
		scenario.Pick = func(k int, writes faults.Log) bool { return k%2 == 0 || atAnEnd(k, writes) }
		faults.DisturbEveryWrite(t, scenario, faults.CutAfter())
	})
	t.Run("refused", func(t *testing.T) {
		scenario.Pick = func(k int, _ faults.Log) bool { return k%7 == 1 }
		faults.DisturbEveryWrite(t, scenario, faults.Conflict(), faults.InternalError())
	})
}

// atAnEnd tells whether a write is among the first or the last five of a release. Its record is written at both ends.
func atAnEnd(k int, writes faults.Log) bool {
	record := func(e faults.Entry) bool { return e.Kind() == "secrets" }
	own := func(e faults.Entry) bool { return strings.Contains(e.Kind(), "sailoperator.io") }
	near := writes[max(0, k-5):min(len(writes), k+4)]
	return slices.ContainsFunc(near, record) && !own(writes[k-1])
}
