package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead/fairlead/internal/operator/foreign"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// recordingReporter records what is asked of it, each call as often as it fails.
type recordingReporter struct {
	mu    sync.Mutex
	calls []string
	// failures are how often a call fails before it succeeds.
	failures map[string]int
	// before, if set, is called before each call is recorded.
	before func(call string)
}

func (r *recordingReporter) call(what string, system foreign.System) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	what += " " + system.Passage
	if r.before != nil {
		r.before(what)
	}
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

// scriptedObserver sees what a test says.
type scriptedObserver struct {
	full, short foreign.Observed
	err         error
	fullLooks   int
}

func (o *scriptedObserver) Observe(context.Context) (foreign.Observed, error) {
	o.fullLooks++
	return o.full, o.err
}

func (o *scriptedObserver) ObserveControllers(context.Context) (foreign.Observed, error) {
	return o.short, o.err
}

func (o *scriptedObserver) Watch(context.Context) {}

// holdsOf are those of passages that are observed like this.
func holdsOf(observers map[string]*scriptedObserver, takeOver ...string) *passageHolds {
	h := &passageHolds{
		takeOver: takeOver, log: logr.Discard(), reporter: &recordingReporter{}, interval: time.Nanosecond, observers: map[string]observer{},
		unknown: map[string][]foreign.Unknown{}, unsure: map[string]bool{}, waiting: map[string]bool{},
		reportDue: make(chan struct{}, 1),
	}
	for _, name := range slices.Sorted(maps.Keys(observers)) {
		h.passages = append(h.passages, Passage{Name: name})
		h.observers[name], h.waiting[name] = observers[name], true
	}
	return h
}

var (
	noController = foreign.Observed{}
	runs         = foreign.Observed{Deployments: []foreign.Deployment{{Namespace: "other", Name: "other", Replicas: 1}}}
	unavailable  = foreign.Observed{Unknown: []foreign.Unknown{{Kind: "Cluster", Cause: foreign.Unavailable, Err: "503"}}}
)

func (h *passageHolds) looks(t *testing.T, n int, free ...string) {
	t.Helper()
	if err := h.look(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(free, namesOf(h.free()), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("free are %s", diff)
	}
}

// TestUnavailableKinds: a passage whose kinds cannot be read now keeps no other from starting, and goes on as it was.
func TestUnavailableKinds(t *testing.T) {
	adoption, rollout := &scriptedObserver{full: unavailable}, &scriptedObserver{}
	h := holdsOf(map[string]*scriptedObserver{"adoption": adoption, "rollout": rollout})
	h.looks(t, 0, "rollout")
	if text := h.describe(); !strings.Contains(text, "passage adoption: waits") || strings.Contains(text, "rollout") {
		t.Errorf("/readyz says %q", text)
	}
	adoption.full = noController
	h.looks(t, 1, "adoption", "rollout")
	adoption.full, adoption.short = unavailable, unavailable
	h.looks(t, 0, "adoption", "rollout")
	adoption.full, adoption.short = runs, runs
	adoption.full.Unknown = unavailable.Unknown
	h.looks(t, 0, "rollout")
	adoption.full, adoption.short = unavailable, unavailable
	h.looks(t, 1, "rollout")
	adoption.full, adoption.short = noController, noController
	h.looks(t, 1, "adoption", "rollout")

	// An error of one passage neither.
	adoption.err, rollout.full = errors.New("broken"), runs
	if err := h.look(t.Context(), 0); err == nil || len(h.current()) != 1 || namesOf(h.free())[0] != "adoption" {
		t.Errorf("%v: held are %v", err, h.current())
	}
}

// TestFirstLook: passages begin together if all kinds are served soon, and without those that wait otherwise. What holds anyhow does
// not wait.
func TestFirstLook(t *testing.T) {
	adoption, rollout := &scriptedObserver{full: unavailable}, &scriptedObserver{}
	h := holdsOf(map[string]*scriptedObserver{"adoption": adoption, "rollout": rollout})
	look, looks := h.firstLook(), 1
	for look(t.Context()) != nil {
		looks++
	}
	if looks != firstLooks || len(h.current()) > 0 || !slices.Equal(namesOf(h.free()), []string{"rollout"}) {
		t.Errorf("after %d looks: held are %v", looks, h.current())
	}

	h = holdsOf(map[string]*scriptedObserver{"adoption": adoption, "rollout": rollout})
	look = h.firstLook()
	err := look(t.Context())
	if err == nil || !isTransient(err) || !strings.Contains(err.Error(), "adoption") {
		t.Errorf("the first time: %v", err)
	}
	adoption.full = noController
	if err := look(t.Context()); err != nil || len(h.free()) != 2 {
		t.Errorf("the second time: %v, %v", err, h.free())
	}

	adoption.full = foreign.Observed{Unknown: unavailable.Unknown, Objects: []foreign.Object{{Kind: "Work", Name: "cart", Finalizers: []string{"karmada.io/cluster-controller"}}}}
	h = holdsOf(map[string]*scriptedObserver{"adoption": adoption, "rollout": rollout})
	if err := h.firstLook()(t.Context()); err != nil || findHold(h.current(), "adoption") == nil {
		t.Errorf("with traces: %v, held are %v", err, h.current())
	}
}

// TestStillWrites: that the other controller has stopped is decided by its objects as they are now.
func TestStillWrites(t *testing.T) {
	writes := foreign.Observed{Objects: []foreign.Object{{Kind: "Istio", Name: "default", Manager: "sail-operator", Wrote: time.Now().Add(time.Hour)}}}
	revision := &scriptedObserver{full: runs, short: runs}
	h := holdsOf(map[string]*scriptedObserver{"revision": revision}, "revision")
	h.looks(t, 0)
	// Its Deployment is gone, and it has written since the last look at objects.
	revision.full, revision.short = writes, noController
	h.looks(t, 1)
	if text := h.describe(); !strings.Contains(text, "has just been written by sail-operator") {
		t.Errorf("/readyz says %q", text)
	}
	revision.full = noController
	h.looks(t, 2, "revision")
}

// TestFullLooks: objects are looked at often enough to see that another controller writes, where Fairlead goes on beside its traces.
func TestFullLooks(t *testing.T) {
	observers := map[string]*scriptedObserver{"adoption": {}, "revision": {}, "rollout": {full: runs, short: runs}}
	h := holdsOf(observers, "revision")
	const looks = 60
	for n := range looks {
		if err := h.look(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	whole := time.Duration(looks) * foreignInterval
	for name, longest := range map[string]time.Duration{"revision": foreign.WritesFor, "rollout": foreign.WritesFor, "adoption": 5 * time.Minute} {
		if every := whole / time.Duration(observers[name].fullLooks); every > longest {
			t.Errorf("%s: every %s, want %s", name, every, longest)
		}
	}
	if observers["adoption"].fullLooks > 2 {
		t.Errorf("%d looks at the objects of a passage that runs", observers["adoption"].fullLooks)
	}
}

// TestStopsBeforeReporting: a passage that finds another controller ends first, and says so on its objects afterwards. An unchanged one
// says so on new objects meanwhile.
func TestStopsBeforeReporting(t *testing.T) {
	revision, rollout := &scriptedObserver{full: runs, short: runs}, &scriptedObserver{short: runs}
	h := holdsOf(map[string]*scriptedObserver{"revision": revision, "rollout": rollout})
	reporter := &recordingReporter{}
	h.reporter = reporter
	h.looks(t, 0, "rollout")
	reporter.calls = nil
	h.awaitChange(t.Context(), passagesNamed("rollout"))
	if calls := reporter.recorded(); len(calls) > 0 || len(h.current()) != 2 {
		t.Errorf("before the round has ended: %v, held are %v", calls, h.current())
	}

	rollout.full = runs
	ctx, end := context.WithCancel(t.Context())
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		h.keepReported(ctx)
	}()
	go h.awaitChange(ctx, nil)
	wait.Until(t, func(context.Context) error {
		if seen := len(reporter.recorded()); seen < 6 {
			return fmt.Errorf("it has reported %d times", seen)
		}
		return nil
	})
	end()
	<-reported
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
	runnable, takenOver := h.takeOverLeft(free)
	reporter.before = func(call string) {
		select {
		case <-takenOver["meshservice"]:
			t.Errorf("taken over before %q", call)
		default:
		}
	}
	if len(reporter.recorded()) > 0 || len(takenOver) != 1 {
		t.Errorf("before it leads: %v, %v", reporter.recorded(), takenOver)
	}
	if err := runnable(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-takenOver["meshservice"]
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
