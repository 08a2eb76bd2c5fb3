package passage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRandomWorlds lets everything happen at once, and checks the promises of
// Next at every single decision. A seed that fails tells its story, and can be
// run alone: go test ./internal/passage -run 'RandomWorlds/seed-17$'
func TestRandomWorlds(t *testing.T) {
	seeds := 3000
	if testing.Short() {
		seeds = 300
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			var story strings.Builder
			defer func() {
				if t.Failed() {
					t.Log("\n" + story.String())
				}
			}()
			randomWorld(t, rand.New(rand.NewPCG(uint64(seed), 0)), &story)
		})
	}
}

func randomWorld(t *testing.T, random *rand.Rand, story *strings.Builder) {
	chance := func(percent int) bool { return random.IntN(100) < percent }
	seconds := func(most int) time.Duration { return time.Duration(random.IntN(most+1)) * time.Second }

	names := 0
	newStep := func() Step {
		names++
		if chance(15) {
			return relabel(fmt.Sprintf("n%d", names))
		}
		step := deploy(fmt.Sprintf("d%d", names), priority(random.IntN(3)))
		switch {
		case chance(8):
			step.State = Done
		case chance(8):
			step.State = Skipped
		case chance(5):
			step.State = Running // on its way somewhere else, in no batch of ours
		case chance(15):
			step.Disturbed = true
		}
		return step
	}
	var steps []Step
	for range random.IntN(25) {
		steps = append(steps, newStep())
	}
	w := newWorld(t, planOf(steps), Batching{Size: random.IntN(5), Delay: seconds(30), FailFast: chance(20)})
	w.story = story
	prepare := func(steps []Step) {
		for _, step := range steps {
			w.takes[step.Object] = seconds(40)
			w.fails[step.Object] = chance(10)
			if step.State == Running {
				w.ready[step.Object] = w.now.Add(seconds(40))
			}
		}
	}
	prepare(steps)
	w.mayWrite = func() bool { return !chance(5) }
	limit := max(w.batching.Size, 1)

	// People grow tired after a while; then it must come to an end.
	meddling := 30
	unordered := chance(20)
	for round := 0; ; round++ {
		if round > 1000 {
			t.Fatal("it goes on for ever")
		}
		if unordered {
			random.Shuffle(len(w.plan.Steps), func(i, j int) {
				w.plan.Steps[i], w.plan.Steps[j] = w.plan.Steps[j], w.plan.Steps[i]
			})
		}
		d, err := w.reconcile()
		if w.peak > limit {
			t.Fatalf("%d ran at once, the size never was above %d", w.peak, limit)
		}
		if errors.Is(err, errDied) {
			w.now = w.now.Add(seconds(60))
			w.skew = seconds(40) - 20*time.Second
			w.tell("* killed, and back with a clock %s ahead", w.skew)
			continue
		}

		next := w.wake(d)
		if meddling > 0 {
			meddling--
			if soon := w.now.Add(seconds(20)); next.IsZero() || soon.Before(next) {
				next = soon
			}
			w.now = next
			switch random.IntN(11) {
			case 9:
				if n := len(w.plan.Steps); n > 0 {
					step := &w.plan.Steps[random.IntN(n)]
					step.Held = !step.Held
					w.tell("* %s is held: %t", step.Object.Name, step.Held)
				}
			case 10:
				if n := len(w.plan.Steps); n > 0 {
					if step := &w.plan.Steps[random.IntN(n)]; step.State == Running {
						step.OverdueSince = w.now
						w.tell("* %s is overdue", step.Object.Name)
					}
				}
			case 0:
				w.tell("* paused")
				w.plan.Hold = Hold("Paused", "paused")
			case 1, 2:
				w.tell("* resumed")
				w.plan.Hold = nil
			case 3:
				if n := len(w.plan.Steps); n > 0 {
					gone := w.plan.Steps[random.IntN(n)].Object
					w.tell("* %s is deleted", gone.Name)
					w.remove(gone)
				}
			case 4:
				late := newStep()
				w.tell("* %s appears", late.Object.Name)
				prepare([]Step{late})
				w.plan.Steps = slices.Insert(w.plan.Steps, random.IntN(len(w.plan.Steps)+1), late)
			case 5:
				w.batching.Size = random.IntN(6) - 1
				limit = max(limit, w.batching.Size)
				w.tell("* size %d", w.batching.Size)
			case 6:
				w.batching.Delay = seconds(60)
				w.tell("* delay %s", w.batching.Delay)
			case 7:
				if n := len(w.plan.Steps); n > 0 {
					step := &w.plan.Steps[random.IntN(n)]
					step.Priority = random.IntN(3)
					w.tell("* %s gets priority %d", step.Object.Name, step.Priority)
				}
			}
			if meddling == 0 {
				w.tell("* resumed")
				w.plan.Hold = nil
				for i := range w.plan.Steps {
					w.plan.Steps[i].Held = false
				}
			}
			continue
		}

		if next.IsZero() {
			if !d.Settled() {
				t.Fatalf("nothing moves any more, and it is %s: %v", d.Outcome, d.Reason)
			}
			failures := len(w.plan.Failures())
			switch d.Outcome {
			case Completed:
				if w.plan.HasChanges() || failures > 0 {
					t.Fatalf("completed with changes left, or %d failures", failures)
				}
			case OutcomeFailed:
				if w.plan.HasChanges() || failures == 0 {
					t.Fatalf("completed with changes left, or without the failures it tells of")
				}
			case Stopped:
				if !w.batching.FailFast || failures == 0 {
					t.Fatal("stopped for no reason")
				}
			}
			return
		}
		w.now = next
	}
}
