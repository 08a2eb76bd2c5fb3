package passage

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// errDied is a process that was killed before it could write.
var errDied = errors.New("killed")

// world is a cluster with a controller in it. Workloads take their time and fail
// as the test says; the controller sees them, records what it sees and does what
// Next tells it, one write at a time, and may be killed before any of them.
type world struct {
	t        *testing.T
	plan     Plan // the record, as the cluster keeps it
	batching Batching
	now      time.Time
	// skew is how far the controller's clock is ahead of the world's.
	skew time.Duration

	takes map[Object]time.Duration // how long a step runs; a second if not told
	fails map[Object]bool
	ready map[Object]time.Time // when what was started will settle
	begun map[Object]int

	mayWrite func() bool // asked before each write
	writes   int
	peak     int // the most disruptive steps that ran when one was started

	story        io.Writer
	lastReported string
	lastClock    string
}

func newWorld(t *testing.T, plan Plan, batching Batching) *world {
	plan.Steps = slices.Clone(plan.Steps)
	return &world{
		t: t, plan: plan, batching: batching, now: epoch,
		takes: map[Object]time.Duration{}, fails: map[Object]bool{},
		ready: map[Object]time.Time{}, begun: map[Object]int{},
		mayWrite: func() bool { return true },
		story:    io.Discard,
	}
}

// tell adds a line to the story; the time stands only where it has moved on.
func (w *world) tell(format string, args ...any) {
	since := w.now.Sub(epoch)
	clock := fmt.Sprintf("%d:%02d", int(since.Minutes()), int(since.Seconds())%60)
	if clock == w.lastClock {
		clock = ""
	} else {
		w.lastClock = clock
	}
	fmt.Fprintf(w.story, "%6s  %s\n", clock, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

func (w *world) write(step *Step, change func(*Step)) error {
	if !w.mayWrite() {
		return errDied
	}
	w.writes++
	change(step)
	return nil
}

// observe records what has settled.
func (w *world) observe() error {
	for i := range w.plan.Steps {
		step := &w.plan.Steps[i]
		end, begun := w.ready[step.Object]
		if step.State != Running || !begun || w.now.Before(end) {
			continue
		}
		err := w.write(step, func(s *Step) {
			s.State, s.EndedAt = Done, end.Add(w.skew)
			if w.fails[s.Object] {
				s.State, s.Reason = Failed, Because("ReadinessTimeout", "not ready in time")
			}
		})
		if err != nil {
			return err
		}
		w.tell("%-8s%-12s%s", strings.ToLower(string(step.State)), step.Object.Name, step.Reason.Message)
	}
	return nil
}

// reconcile does all that can be done without time passing.
func (w *world) reconcile() (Decision, error) {
	for range 10 * (len(w.plan.Steps) + 1) {
		if err := w.observe(); err != nil {
			return Decision{}, err
		}
		now := w.now.Add(w.skew)
		d := Next(w.plan, w.batching, now)
		for _, violation := range violations(w.plan, w.batching, now, d) {
			w.t.Errorf("at %s: %s", w.now.Sub(epoch), violation)
		}
		if w.t.Failed() {
			w.t.FailNow()
		}
		if len(d.Start) == 0 {
			w.report(d, now)
			return d, nil
		}
		for _, step := range d.Start {
			if err := w.start(step, now); err != nil {
				return d, err
			}
		}
	}
	w.t.Fatalf("at %s: there is always something more to start", w.now.Sub(epoch))
	return Decision{}, nil
}

func (w *world) start(step Step, now time.Time) error {
	place := w.place(step.Object)
	err := w.write(&w.plan.Steps[place], func(s *Step) {
		s.State, s.Batch, s.StartedAt = Running, step.Batch, now
	})
	if err != nil {
		return err
	}
	if w.begun[step.Object]++; w.begun[step.Object] > 1 {
		w.t.Fatalf("at %s: %s is started twice", w.now.Sub(epoch), step.Object)
	}
	takes, reported := w.takes[step.Object]
	if !reported && step.Disruptive {
		takes = time.Second
	}
	w.ready[step.Object] = w.now.Add(takes)
	if step.Disruptive && !step.Disturbed {
		w.peak = max(w.peak, count(w.plan.Steps, func(s Step) bool {
			return s.Disruptive && s.State == Running && s.OverdueSince.IsZero()
		}))
	}
	if step.Disruptive {
		w.tell("%-8s%-12sbatch %d", "start", step.Object.Name, step.Batch)
	} else {
		w.tell("%-8s%s", "start", step.Object.Name)
	}
	return nil
}

func (w *world) report(d Decision, now time.Time) {
	v := NewView(d, now)
	reported := fmt.Sprintf("%s: %s", v.State, v.Headline)
	if reported == w.lastReported {
		return
	}
	w.lastReported = reported
	w.tell("        = %s", reported)
	if v.Reason != nil && !strings.Contains(v.Headline, v.Reason.Message) {
		w.tell("          %s", v.Reason.Message)
	}
}

// wake is when something happens next by itself, the zero time if nothing does.
func (w *world) wake(d Decision) time.Time {
	var next time.Time
	soonest := func(t time.Time) {
		if t.After(w.now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if !d.RequeueAt.IsZero() {
		soonest(d.RequeueAt.Add(-w.skew))
	}
	for _, step := range w.plan.Steps {
		if step.State == Running {
			soonest(w.ready[step.Object])
		}
	}
	return next
}

func (w *world) place(object Object) int {
	return slices.IndexFunc(w.plan.Steps, func(s Step) bool { return s.Object == object })
}

func (w *world) remove(object Object) {
	if place := w.place(object); place >= 0 {
		w.plan.Steps = slices.Delete(w.plan.Steps, place, place+1)
	}
}
