package revision_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// What needs an operator whose connection can be disturbed has it within the test, on a hub of its own, one after the
// other. Package test/e2e/revision/helm has the writes of each release alone.
func TestDisturbances(t *testing.T) {
	t.Parallel()
	w := newHub(t)
	w.anchor(t)
	t.Run("killed while installing", w.killedWhileInstalling)
	t.Run("killed while upgrading", w.killedWhileUpgrading)
	t.Run("charts are recorded first", w.chartsAreRecordedFirst)
	t.Run("a status is not inherited", w.statusIsNotInherited)
	t.Run("pods that cannot be seen", w.forbiddenPods)
}

// killedWhileInstalling kills the operator at its writes while it brings a control plane and a tag from nothing.
func (w *world) killedWhileInstalling(t *testing.T) {
	disturb(t, faults.Scenario{Config: w.Config(), Setup: func(t testing.TB) faults.World {
		return w.newStory(t, "v1.31.0").play(t)
	}}, map[string]faults.Action{
		// Some of the objects are there; the last record says that all of them are.
		"deployments.apps 1": faults.CutAfter(),
		"secrets -1":         faults.Conflict(),
	})
}

// killedWhileUpgrading kills the operator at its writes while it upgrades a control plane in place, and with it the tag.
// Some objects come with the new version, and some go.
func (w *world) killedWhileUpgrading(t *testing.T) {
	var s *story
	disturb(t, faults.Scenario{
		Config: w.Config(),
		Setup: func(t testing.TB) faults.World {
			s = w.newStory(t, "v1.24.0")
			s.next = "v1.31.0"
			return s.play(t)
		},
		Counted: func(r faults.Request) bool { return faults.Write(r) && s.upgrading.Load() },
	}, map[string]faults.Action{
		// Helm's record is there and nothing else; the first of what is no longer needed has gone.
		"secrets 1": faults.CutAfter(),
		"delete 1":  faults.CutAfter(),
	})
}

// operateWithin runs an operator within the test until that ends.
func operateWithin(t *testing.T, config *rest.Config) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	run := harness.InProcessOperator(t, v1.PassageRevision)
	go func() { ended <- run(ctx, config) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// statusIsNotInherited: a status is for the Istio that was looked at, not for one that has its name by the time it is
// written.
func (w *world) statusIsNotInherited(t *testing.T) {
	first, second := revisionBased("mesh", "missing", "v1.24.0", 0), revisionBased("mesh", "missing", "v1.26.0", 0)
	w.make(t, first)
	var once atomic.Bool
	answer := make(chan int, 1)
	config := rest.CopyConfig(w.Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/istios/mesh/status") || !once.CompareAndSwap(false, true) {
				return next.RoundTrip(r)
			}
			if err := errors.Join(w.Delete(r.Context(), first), w.Create(r.Context(), second)); err != nil {
				return nil, err
			}
			response, err := next.RoundTrip(r)
			if err == nil {
				answer <- response.StatusCode
			}
			return response, err
		})
	})
	operateWithin(t, config)
	select {
	case code := <-answer:
		if code != http.StatusConflict {
			t.Errorf("the status of the first was answered with %d", code)
		}
	case <-time.After(wait.Deadline()):
		t.Fatal("no status was written")
	}
	until(t, w, second, func(istio *v1.Istio) error {
		if istio.Status.ActiveRevisionName != "mesh-v1-26-0" {
			return fmt.Errorf("the active revision is %q", istio.Status.ActiveRevisionName)
		}
		return nil
	})
	w.delete(t, second)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// disturb tells a story again and again, each time with another of its writes disturbed: with some at which much changes,
// or with many in full, which takes minutes and is for `make e2e-full`.
func disturb(t *testing.T, scenario faults.Scenario, turns map[string]faults.Action) {
	t.Helper()
	// To be killed before a write is, to what comes after, the same as to be killed after the one before it.
	killed := faults.CutAfter()
	actions := map[string][]faults.Action{}
	for turn, action := range turns {
		actions[turn] = []faults.Action{action}
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
	scenario.Timeout = wait.Deadline()
	faults.DisturbWrites(t, scenario, choose)
}
