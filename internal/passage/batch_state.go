package passage

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// batchState is the state of all batches, read from the recorded steps. Steps are
// referred to by index.
type batchState struct {
	// steps are a copy, with a batch number on each disruptive one.
	steps []Step

	prepare   []int // not disruptive, to start
	preparing []int // not disruptive, started
	queue     []int // disruptive, to start, in the order in which they will
	running   []int // disruptive, started
	overdue   []int // disruptive, started so long ago that they hold nothing
	held      []int // to start when what each waits for has come
	failed    []int
	done      int
	disturbed int // those at the head of the queue whose object is disturbed already

	// batch is the last one that was opened, and the next three are about it.
	batch    int
	members  int
	priority int
	mixed    bool

	// batches counts those to come as well.
	batches int
	// settledAt is when the last member of any batch settled, as far as known.
	settledAt time.Time
}

func readBatches(steps []Step, size int, latestCredible time.Time) batchState {
	r := batchState{steps: slices.Clone(steps), queue: make([]int, 0, len(steps))}
	for i := range r.steps {
		step := &r.steps[i]
		switch {
		case step.State.pending() && step.Held:
			r.held = append(r.held, i)
		case step.State.pending() && step.Disruptive:
			r.queue = append(r.queue, i)
		case step.State.pending():
			r.prepare = append(r.prepare, i)
		case step.overdue() && step.Disruptive:
			r.overdue = append(r.overdue, i)
		case step.State.running() && step.Disruptive:
			r.running = append(r.running, i)
		case step.State.running():
			r.preparing = append(r.preparing, i)
		case step.State == Failed:
			r.failed = append(r.failed, i)
		case step.State == Done:
			r.done++
		}
		if step.State.pending() {
			step.State, step.Batch = Pending, 0
		} else if step.inBatch() {
			r.join(step)
			if end := step.heldUntil(); end.After(r.settledAt) && !end.After(latestCredible) {
				r.settledAt = end
			}
		}
	}
	r.forecast(size)
	return r
}

// inBatch holds for what was started as part of a batch. A workload that had
// nothing to restart is done without one, and a number that no plan can reach
// was not written by us.
func (s *Step) inBatch() bool {
	return s.Disruptive && !s.State.leftOut() && 0 < s.Batch && s.Batch < math.MaxInt32
}

// heldUntil is when a step no longer held those after it; zero while it does.
func (s *Step) heldUntil() time.Time {
	if s.OverdueSince.IsZero() {
		return s.EndedAt
	}
	return s.OverdueSince
}

func (r *batchState) join(step *Step) {
	if step.Batch > r.batch {
		r.batch, r.priority = step.Batch, step.Priority
		r.members, r.mixed = 0, false
	}
	if step.Batch == r.batch {
		r.members++
		// People edit priorities of what has already started.
		r.mixed = r.mixed || step.Priority != r.priority
	}
}

// forecast sorts the queue and numbers it: what is disturbed already joins the last
// batch or opens the first, then comes what that batch is short of, then new ones.
func (r *batchState) forecast(size int) {
	slices.SortFunc(r.queue, func(i, j int) int {
		a, b := &r.steps[i], &r.steps[j]
		switch {
		case a.Disturbed != b.Disturbed && a.Disturbed:
			return -1
		case a.Disturbed != b.Disturbed:
			return 1
		case a.Priority != b.Priority:
			return cmp.Compare(a.Priority, b.Priority)
		}
		return cmp.Compare(i, j)
	})

	r.batches = r.batch
	members, priority, mixed := r.members, r.priority, r.mixed
	for _, i := range r.queue {
		step := &r.steps[i]
		if !step.Disturbed {
			break
		}
		if r.batches == 0 {
			r.batches, priority = 1, step.Priority
		}
		step.Batch = r.batches
		members, mixed = members+1, mixed || step.Priority != priority
		r.disturbed++
	}
	room := size - members
	if r.batches == 0 || mixed {
		room = 0
	}
	for _, i := range r.queue[r.disturbed:] {
		if step := &r.steps[i]; room <= 0 || step.Priority != priority {
			r.batches++
			room, priority = size, step.Priority
		}
		r.steps[i].Batch = r.batches
		room--
	}
}

// stops tells whether, with FailFast, the failures so far stop the next steps. Steps that are not disruptive come first, and only
// the failure of such a step stops them; the failure of any step stops disruptive ones.
func (r *batchState) stops() bool {
	preparing := len(r.prepare) > 0
	return slices.ContainsFunc(r.failed, func(i int) bool { return !preparing || !r.steps[i].Disruptive })
}

// nextBatch is the batch of the step at the head of the queue.
func (r *batchState) nextBatch() int { return r.steps[r.queue[0]].Batch }

// resumesAt is when the delay is over that follows the last step to settle: the zero
// time when there was none or its end is unknown.
func (r *batchState) resumesAt(delay time.Duration) time.Time {
	if r.settledAt.IsZero() || delay <= 0 {
		return time.Time{}
	}
	return r.settledAt.Add(delay)
}

// startsNewBatch reports whether whatever comes next does not belong to the last
// batch; it holds, too, when nothing comes next.
func (r *batchState) startsNewBatch() bool {
	return len(r.queue) == 0 || r.nextBatch() > r.batch
}

func (r *batchState) describeNext() string {
	if r.startsNewBatch() {
		return fmt.Sprintf("batch %d", r.nextBatch())
	}
	return fmt.Sprintf("the rest of batch %d", r.batch)
}

// nextSteps is as much of the next batch as there is room for.
func (r *batchState) nextSteps(room int) []int {
	for n, i := range r.queue {
		if n == room || r.steps[i].Batch != r.nextBatch() {
			return r.queue[:n]
		}
	}
	return r.queue
}

// waiting counts what has yet to start.
func (r *batchState) waiting() int { return len(r.prepare) + len(r.queue) + len(r.held) }

func (r *batchState) settled() bool {
	return r.waiting() == 0 && len(r.preparing)+len(r.running)+len(r.overdue) == 0
}

func (r *batchState) pick(places ...[]int) []Step {
	var steps []Step
	for _, list := range places {
		for _, i := range list {
			steps = append(steps, r.steps[i])
		}
	}
	return steps
}

func (r *batchState) describeHeld() string {
	if len(r.held) == 1 {
		return r.describeSteps(r.held) + " waits"
	}
	return r.describeSteps(r.held) + " wait"
}

// describeSteps tells which steps are meant without listing a thousand of them.
func (r *batchState) describeSteps(places []int) string {
	first := r.steps[places[0]].Object.String()
	if len(places) == 1 {
		return first
	}
	return fmt.Sprintf("%s and %d more", first, len(places)-1)
}
