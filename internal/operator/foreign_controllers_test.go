package operator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/operator/foreign"
)

// recordingReporter records what is asked of it, each call as often as it fails.
type recordingReporter struct {
	mu    sync.Mutex
	calls []string
	// failures are how often a call fails before it succeeds.
	failures map[string]int
}

func (r *recordingReporter) call(what string, system foreign.System) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	what += " " + system.Passage
	r.calls = append(r.calls, what)
	if r.failures[what] > 0 {
		r.failures[what]--
		return errors.New("refused")
	}
	return nil
}

func (r *recordingReporter) recorded() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func (r *recordingReporter) Held(_ context.Context, s foreign.System, _, _ string) error {
	return r.call("held", s)
}

func (r *recordingReporter) Released(_ context.Context, s foreign.System) error {
	return r.call("released", s)
}

func (r *recordingReporter) ReleaseFinalizers(_ context.Context, s foreign.System) error {
	return r.call("finalizers", s)
}

func (r *recordingReporter) ClaimGenerated(_ context.Context, s foreign.System) error {
	return r.call("claim", s)
}

func passagesNamed(names ...string) []Passage {
	var all []Passage
	for _, name := range names {
		all = append(all, Passage{Name: name})
	}
	return all
}

// TestTakesOverWhileLeading: what the other controller has left is taken over by the replica that leads, for the passages that were
// asked for, and until that has succeeded.
func TestTakesOverWhileLeading(t *testing.T) {
	reporter := &recordingReporter{failures: map[string]int{"released revision": 1, "claim meshservice": 1}}
	h := &passageHolds{takeOver: []string{"meshservice", "adoption"}, log: logr.Discard(), reporter: reporter, interval: time.Nanosecond}
	free := passagesNamed("revision", "meshservice")
	h.begin(t.Context(), free)
	if diff := cmp.Diff([]string{"released revision", "released meshservice", "released revision"}, reporter.recorded()); diff != "" {
		t.Errorf("each replica: %s", diff)
	}
	reporter.calls = nil
	runnable := h.takeOverLeft(free)
	if len(reporter.recorded()) > 0 {
		t.Errorf("before it leads: %v", reporter.recorded())
	}
	if err := runnable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"finalizers meshservice", "claim meshservice", "finalizers meshservice", "claim meshservice"}, reporter.recorded()); diff != "" {
		t.Errorf("while it leads: %s", diff)
	}
}

// TestLogUnknown: each kind that cannot be read is logged once, with advice that fits.
func TestLogUnknown(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	h := &passageHolds{log: log, unknown: map[string][]foreign.Unknown{}}
	forbidden := foreign.Unknown{Kind: "Lease", Cause: foreign.Forbidden, Err: "leases is forbidden"}
	failed := foreign.Unknown{Kind: "Materialize", Cause: foreign.Failed, Err: "conversion webhook failed, attempt 1"}
	again := failed
	again.Err = "conversion webhook failed, attempt 2"
	for _, unknown := range [][]foreign.Unknown{{forbidden, failed}, {forbidden, again}, {failed, forbidden}} {
		h.logUnknown("rollout", unknown)
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "let the operator read") || strings.Contains(lines[1], "let the operator read") {
		t.Fatalf("logged %q", lines)
	}
	h.logUnknown("rollout", nil)
	h.logUnknown("rollout", []foreign.Unknown{failed})
	if len(lines) != 3 {
		t.Errorf("what cannot be read again is not logged: %q", lines)
	}
}
