package passage

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// violations checks what Next promises about any decision, in the plainest way
// there is, so that it cannot share a mistake with the engine. Every test that
// takes a decision asks for it.
func violations(plan Plan, batching Batching, now time.Time, d Decision) []string {
	var found []string
	violated := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	size := max(batching.Size, 1)
	delay := max(batching.Delay, 0)

	isPending := func(s Step) bool { return s.State == Pending || s.State == "" }
	isSettled := func(s Step) bool {
		return s.State == Done || s.State == Failed || s.State == Skipped || s.State == Later
	}
	isRunning := func(s Step) bool { return !isPending(s) && !isSettled(s) }
	isMember := func(s Step) bool {
		return s.Disruptive && !isPending(s) && s.State != Skipped && s.State != Later && 0 < s.Batch && s.Batch < 1<<31-1
	}

	// What was recorded.
	var queue []Step
	var unsettled, disturbing, disturbed, held, preparing, failures, preparationFailures, last int
	var lastEnd time.Time
	for _, step := range plan.Steps {
		switch {
		case isPending(step) && step.Held:
			unsettled++
			held++
		case isRunning(step) && step.Disruptive && !step.OverdueSince.IsZero():
			unsettled++
		case isPending(step) && step.Disruptive:
			queue = append(queue, step)
			unsettled++
			if step.Disturbed {
				disturbed++
			}
		case !isSettled(step) && !step.Disruptive:
			preparing++
			unsettled++
		case isRunning(step):
			disturbing++
			unsettled++
		case step.State == Failed:
			failures++
			if !step.Disruptive {
				preparationFailures++
			}
		}
		if isMember(step) {
			last = max(last, step.Batch)
			end := step.EndedAt
			if !step.OverdueSince.IsZero() {
				end = step.OverdueSince
			}
			if !end.After(now.Add(delay)) && end.After(lastEnd) {
				lastEnd = end
			}
		}
	}
	slices.SortStableFunc(queue, func(a, b Step) int {
		switch {
		case a.Disturbed && !b.Disturbed:
			return -1
		case b.Disturbed && !a.Disturbed:
			return 1
		}
		return cmp.Compare(a.Priority, b.Priority)
	})

	// What is started.
	var disruptive []Step
	for _, step := range d.Start {
		if step.State != Pending || step.Held {
			violated("%s is started though it is %s", step.Object, step.State)
		}
		if step.Disruptive {
			disruptive = append(disruptive, step)
		} else if step.Batch != 0 {
			violated("%s is not disruptive and has batch %d", step.Object, step.Batch)
		}
	}
	if (d.Reason == nil) != (len(d.Start) > 0) {
		violated("%d start and the reason why nothing starts is %v", len(d.Start), d.Reason)
	}
	if len(d.Start) > 0 && plan.Hold != nil {
		violated("%s is started on hold", d.Start[0].Object)
	}
	for _, step := range d.Start {
		if batching.FailFast && !step.Disturbed && (failures > 0 && step.Disruptive || preparationFailures > 0) {
			violated("%s is started after a failure", step.Object)
		}
	}
	if len(disruptive) > 0 && disturbed > 0 {
		// What is disturbed already.
		if preparing > 0 {
			violated("%s is started before %d that must come first", disruptive[0].Object, preparing)
		}
		if len(disruptive) != disturbed {
			violated("%d are disturbed already, %d start", disturbed, len(disruptive))
		}
		for i, step := range disruptive {
			if !step.Disturbed || step.Object != queue[i].Object || step.Batch != max(last, 1) {
				violated("%s starts in batch %d, and batch %d is open", step.Object, step.Batch, last)
			}
		}
	} else if len(disruptive) > 0 {
		if disturbing+len(disruptive) > size {
			violated("%d run and %d start, the size is %d", disturbing, len(disruptive), size)
		}
		if preparing > 0 {
			violated("%s is started before %d that must come first", disruptive[0].Object, preparing)
		}
		batch := disruptive[0].Batch
		if batch > last {
			if batch != last+1 {
				violated("batch %d is opened after %d", batch, last)
			}
			if disturbing > 0 {
				violated("batch %d is opened while %d run", batch, disturbing)
			}
		}
		if disturbing == 0 && !lastEnd.IsZero() && now.Before(lastEnd.Add(delay)) {
			violated("batch %d goes on %s too early", batch, lastEnd.Add(delay).Sub(now))
		}
		members := len(disruptive)
		for _, step := range plan.Steps {
			if isMember(step) && step.Batch == batch {
				members++
				if step.Priority != disruptive[0].Priority {
					violated("batch %d of priority %d is joined by %s", batch, step.Priority, disruptive[0].Object)
				}
			}
		}
		if members > size {
			violated("batch %d has %d members, the size is %d", batch, members, size)
		}
		for i, step := range disruptive {
			if step.Batch != batch || step.Priority != disruptive[0].Priority {
				violated("%s starts in one batch with %s", step.Object, disruptive[0].Object)
			}
			if step.Object != queue[i].Object {
				violated("%s is started before %s", step.Object, queue[i].Object)
			}
		}
	}

	// What is waited for, and for how long.
	for _, step := range d.Wait {
		if !isRunning(step) {
			violated("%s is waited for though it is %s", step.Object, step.State)
		}
	}
	if waited := len(plan.Steps) - count(plan.Steps, isPending) - count(plan.Steps, isSettled); len(d.Wait) != waited {
		violated("%d are waited for, %d run", len(d.Wait), waited)
	}
	switch {
	case len(d.Start) > 0 || len(d.Wait) > 0 || d.Outcome == Held:
	case d.Outcome == Delaying:
		if !d.RequeueAt.After(now) || d.RequeueAt.After(now.Add(delay).Add(delay)) {
			violated("nothing runs and the next look is at %s, the delay is %s", d.RequeueAt, delay)
		}
	case !d.Settled():
		violated("nothing runs, nothing starts and it is not over but %s", d.Outcome)
	}
	if d.Outcome == Held && plan.Hold == nil && (held == 0 || len(queue)+preparing+disturbing > 0) {
		violated("held by %v", d.Reason)
	}
	if d.Settled() && unsettled > 0 && d.Outcome != Stopped {
		violated("%s with %d unsettled", d.Outcome, unsettled)
	}

	// What is told.
	if d.Batch < 0 || d.Batch > d.Batches {
		violated("batch %d of %d", d.Batch, d.Batches)
	}
	if len(d.Plan.Steps) != len(plan.Steps) {
		violated("%d steps became %d", len(plan.Steps), len(d.Plan.Steps))
		return found
	}
	for i, step := range d.Plan.Steps {
		was := plan.Steps[i]
		if isPending(was) {
			if step.Disruptive && !step.Held && (step.Batch < 1 || step.Batch > d.Batches) {
				violated("%s is forecast for batch %d of %d", step.Object, step.Batch, d.Batches)
			}
			was.State, was.Batch = Pending, step.Batch
		}
		if was != step {
			violated("the record of %s was changed to %+v", step.Object, step)
		}
	}
	return found
}

func count(steps []Step, is func(Step) bool) int {
	n := 0
	for _, step := range steps {
		if is(step) {
			n++
		}
	}
	return n
}
