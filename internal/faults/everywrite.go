package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// CrashAtEveryWrite kills the process of the scenario at each of its writes,
// once before the write arrives and once after, and demands that the restarted
// process ends where an undisturbed one does.
func CrashAtEveryWrite(t testing.TB, s Scenario) {
	t.Helper()
	DisturbEveryWrite(t, s, CutBefore(), CutAfter())
}

// DisturbEveryWrite runs the scenario undisturbed, then once for each of its
// writes and each action, with that action happening to that write. A process
// that is cut off, or gives up with an error, is started again undisturbed. All
// runs must end in the same state.
func DisturbEveryWrite(t testing.TB, s Scenario, actions ...Action) {
	t.Helper()
	DisturbWrites(t, s, func(k int, writes Log) []Action {
		if s.Pick != nil && !s.Pick(k, writes) {
			return nil
		}
		return actions
	})
}

// DisturbWrites is DisturbEveryWrite with a choice of actions for each write, so
// that a story that takes long is told undisturbed but once. The k-th write is
// writes[k-1].
func DisturbWrites(t testing.TB, s Scenario, choose func(k int, writes Log) []Action) {
	t.Helper()
	s = s.withDefaults()

	plain := s.tell(t, nil)
	if plain.err != nil {
		t.Fatalf("undisturbed run: %v\n%s", plain.err, plain.story())
	}
	writes := len(plain.lives[0])
	if writes == 0 {
		t.Fatalf("the undisturbed run wrote nothing, so there is nothing to disturb")
	}
	if len(plain.early) > 0 && !s.RestartWrites {
		t.Errorf("the end state was taken for reached before these writes, so Settled must ask for more:\n%s", strings.Join(plain.early, "\n"))
	}
	if again := plain.lives[1]; len(again) > 0 && !s.RestartWrites {
		t.Errorf("started again with nothing left to do, the process wrote:\n%s", again)
	}

	for k := 1; k <= writes; k++ {
		for _, action := range choose(k, plain.lives[0]) {
			s.disturb(t, plain, k, action)
		}
	}
}

// disturb runs the scenario with an action happening to one write. How many writes there are may depend on timing: if there are
// fewer this time, the last of them is disturbed in another run.
func (s Scenario) disturb(t testing.TB, plain *outcome, k int, action Action) {
	t.Helper()
	for {
		title := fmt.Sprintf("%s write %d of %d", action, k, len(plain.lives[0]))
		run := s.tell(t, &Rule{Match: s.Counted, Nth: k, Action: action})
		if run.err != nil {
			t.Errorf("%s: %v\n%s", title, run.err, run.story())
			return
		}
		if diff := cmp.Diff(plain.end, run.end); diff != "" {
			t.Errorf("%s: the end state differs (-undisturbed +disturbed):\n%s\n%s", title, diff, run.story())
		}
		if run.disturbed {
			return
		}
		if k = min(k-1, len(run.lives[0])); k == 0 {
			t.Errorf("%s: nothing was disturbed, for this time nothing was written at all\n%s", title, run.story())
			return
		}
	}
}

// outcome is how one run of a scenario went.
type outcome struct {
	lives     []Log // the writes of the process's first life, and of its second
	disturbed bool
	end       map[string]string
	err       error

	mu    sync.Mutex
	early []string // writes of an undisturbed life before which Settled was content
}

func (t *outcome) story() string {
	var b strings.Builder
	for i, log := range t.lives {
		fmt.Fprintf(&b, "writes of run %d:\n%s\n", i+1, log)
	}
	return b.String()
}

// tell runs the scenario once in a world of its own. Without a rule the process
// is started a second time when it has settled, to see that it leaves all as is.
func (s Scenario) tell(t testing.TB, rule *Rule) *outcome {
	t.Helper()
	run := &outcome{}
	w := s.Setup(t)
	defer w.teardown()
	w.Settled = oneAtATime(w.Settled)

	in := New().Counting(s.Counted)
	again := rule == nil
	if rule != nil {
		in.Add(*rule)
	} else {
		in.Add(Rule{Match: s.Counted, Action: lookBefore(w.Settled, run)})
	}
	err := s.live(w, in, run)
	run.disturbed = rule != nil && in.Fired()
	if err != nil {
		var exit exitError
		gaveUp := run.disturbed && errors.As(err, &exit)
		if again = gaveUp || errors.Is(err, ErrCut); !again {
			run.err = err
			return run
		}
	}
	if again {
		if err := s.live(w, New().Counting(s.Counted), run); err != nil {
			run.err = fmt.Errorf("started again: %w", err)
			return run
		}
	}

	ctx, cancel := context.WithTimeout(context.Background(), s.Timeout)
	defer cancel()
	if run.end, err = w.Snapshot(ctx); err != nil {
		run.err = fmt.Errorf("take a snapshot of the end state: %w", err)
	}
	return run
}

// lookBefore notes the writes before which Settled is content. On a busy machine, a process could be stopped before such a write.
func lookBefore(settled func(context.Context) error, run *outcome) Action {
	return Action{name: "look", do: func(x *exchange) (*http.Response, error) {
		early := settled(x.http.Context()) == nil
		resp, err := x.next()
		if early && err == nil && resp.StatusCode < http.StatusMultipleChoices {
			run.mu.Lock()
			defer run.mu.Unlock()
			run.early = append(run.early, fmt.Sprintf("%s -> %d", x.request, resp.StatusCode))
		}
		return resp, err
	}}
}

// oneAtATime lets Settled read into objects that the world keeps: lookBefore calls it for each write, and a process writes several
// at once.
func oneAtATime(settled func(context.Context) error) func(context.Context) error {
	free := make(chan struct{}, 1)
	return func(ctx context.Context) error {
		free <- struct{}{}
		defer func() { <-free }()
		return settled(ctx)
	}
}

// live is one life of the process, from its start until it is gone.
func (s Scenario) live(w World, in *Injector, run *outcome) error {
	p := start(w, s.Config, in)
	err := p.settle(w, s.Timeout, s.Quiet)

	ctx, cancel := context.WithTimeout(context.Background(), s.Timeout)
	defer cancel()
	stopErr := p.end(ctx)
	run.lives = append(run.lives, in.Log())
	if stopErr != nil {
		return stopErr
	}
	if err == nil {
		err = w.invariant(ctx)
	}
	return err
}
