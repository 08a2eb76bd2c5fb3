package passage

import "time"

// Batching is how disruptive steps are spread over time.
type Batching struct {
	// Size is how many disruptive steps may run at any moment, but for those of
	// what is disturbed already. Less than one is taken as one: the most careful
	// reading of a setting that makes no sense.
	Size int
	// Delay is how long a settled batch is left alone before the next one opens.
	Delay time.Duration
	// FailFast starts nothing more once a step has failed; otherwise the others
	// go on and the failure is reported at the end.
	FailFast bool
}

func (b Batching) size() int { return max(b.Size, 1) }

// Outcome is where a plan stands as a whole.
type Outcome string

const (
	// InProgress is a plan with steps that start now or are waited for.
	InProgress Outcome = "InProgress"
	// Delaying is the time between one batch and the next.
	Delaying Outcome = "Delaying"
	// Held is a plan that a gate keeps from going on.
	Held Outcome = "Held"
	// Stopped is a plan that a failure keeps from going on.
	Stopped Outcome = "Stopped"
	// Completed is a plan with nothing left to do.
	Completed Outcome = "Completed"
	// OutcomeFailed is a plan that went to its end, not always with success.
	OutcomeFailed Outcome = "Failed"
)

// Why nothing starts, other than a gate's own reason.
const (
	CodePreparing    Code = "Preparing"
	CodeBatchRunning Code = "BatchRunning"
	CodeBatchDelay   Code = "BatchDelay"
	CodeStepFailed   Code = "StepFailed"
	CodeNothingLeft  Code = "NothingLeft"
)

// Decision is what to do next about a plan.
type Decision struct {
	// Plan is the plan decided on, each step with its batch: the recorded one, or
	// for a step that has not started the one that it will be in if nothing changes.
	Plan    Plan
	Outcome Outcome
	// Start are the steps to start now, in this order. Each is to be recorded as
	// running, with its batch, in the same write that starts it; one that
	// cannot be started is to be recorded as failed.
	Start []Step
	// Wait are the steps that have started and have not settled.
	Wait []Step
	// Batch is the last one that was opened, zero before the first; Batches is
	// how many there are with those to come.
	Batch, Batches int
	// RequeueAt is when the decision changes without an event; zero if only events can change it.
	RequeueAt time.Time
	// Reason says why nothing starts, and is nil exactly when something does.
	Reason *Reason
}

// Settled reports whether nothing runs and nothing will start until something
// changes.
func (d Decision) Settled() bool {
	switch d.Outcome {
	case Completed, OutcomeFailed:
		return true
	case Stopped:
		return len(d.Wait) == 0
	default:
		return false
	}
}

// Next decides what happens now, from nothing but the plan as it is recorded and
// the time. It promises, whatever the record says and wherever an earlier process
// died:
//
//   - Steps that are not disruptive come first and all at once; nothing
//     disruptive starts until they have settled.
//   - Steps whose object is disturbed already come next and all at once, in the
//     last batch that was opened or the first: neither Size nor Delay nor a failure
//     of another step holds them.
//   - No other disruptive step starts while Size of them run. If more are recorded,
//     because Size was lowered or they were disturbed already, none starts until
//     enough have settled.
//   - Lower priorities go first, then the order of the plan; a batch holds one
//     priority only.
//   - A batch that is short, because the process died while starting it, is
//     filled up before another one opens. Members that have settled are counted,
//     so it ends as without the crash, and is not refilled as they settle.
//   - The next batch opens when no disruptive step runs, those of no batch
//     included.
//   - Once none runs, Delay passes before the next one starts. The first batch
//     has nothing to wait for.
//   - A step that is overdue counts as settled for the steps after it, and the plan
//     ends when it has.
//   - A step that is held by itself is left out; the plan does not end without it.
//   - A hold, or with FailFast a failure, starts nothing; what runs is waited for.
//     A failed disruptive step does not stop steps that are not disruptive: a rollback
//     may begin with them.
//
// The record must hold the caller's own last writes. Read through a cache that
// lags behind them, a started step looks like one that has yet to start.
func Next(plan Plan, batching Batching, now time.Time) Decision {
	size := batching.size()
	// The clock of an earlier process may have been a little ahead, which is tolerated; an end further ahead than one delay is an
	// error and is ignored.
	r := readBatches(plan.Steps, size, now.Add(max(batching.Delay, 0)))
	plan.Steps = r.steps
	d := Decision{
		Plan:    plan,
		Wait:    r.pick(r.preparing, r.running, r.overdue),
		Batch:   r.batch,
		Batches: r.batches,
	}

	goesOn := r.resumesAt(batching.Delay)
	switch {
	case r.settled() && !plan.heldUnplanned():
		d.finish(r)

	case plan.Hold == nil && r.disturbed > 0 && len(r.prepare)+len(r.preparing) == 0:
		d.Outcome, d.Batch = InProgress, r.nextBatch()
		d.Start = r.pick(r.queue[:r.disturbed])

	case batching.FailFast && r.stops() && r.waiting() > 0:
		d.startNothing(Stopped, CodeStepFailed, "%s failed: nothing more starts until that is retried, %d left",
			r.describeSteps(r.failed), r.waiting())

	case plan.Hold != nil:
		d.Outcome, d.Reason = Held, plan.Hold

	case len(r.prepare) > 0:
		d.Outcome, d.Start = InProgress, r.pick(r.prepare)

	case len(r.preparing) > 0:
		d.startNothing(InProgress, CodePreparing, "waiting for %s to settle before anything is disturbed",
			r.describeSteps(r.preparing))

	case len(r.running) > size && len(r.queue) > 0:
		d.startNothing(InProgress, CodeBatchRunning, "waiting for %s to settle: %d run, more than the batch size of %d",
			r.describeSteps(r.running), len(r.running), size)

	case len(r.running) > 0 && (r.startsNewBatch() || len(r.running) == size):
		d.startNothing(InProgress, CodeBatchRunning, "waiting for %s to settle", r.describeSteps(r.running))

	case len(r.queue) == 0 && len(r.overdue) > 0:
		d.startNothing(InProgress, CodeBatchRunning, "waiting for %s to settle", r.describeSteps(r.overdue))

	case len(r.queue) == 0:
		why := r.steps[r.held[0]].Reason
		d.startNothing(Held, why.Code, "%s: %s", r.describeHeld(), why.Message)

	case len(r.running) == 0 && now.Before(goesOn):
		d.startNothing(Delaying, CodeBatchDelay, "%s follows at %s, %s after the last step settled",
			r.describeNext(), goesOn.UTC().Format(time.RFC3339), batching.Delay)
		d.RequeueAt = goesOn

	default:
		d.Outcome, d.Batch = InProgress, r.nextBatch()
		d.Start = r.pick(r.nextSteps(size - len(r.running)))
	}
	return d
}

// heldUnplanned holds for a plan that may be empty because it could not be made.
func (p Plan) heldUnplanned() bool { return p.Hold != nil && len(p.Steps) == 0 }

func (d *Decision) startNothing(outcome Outcome, code Code, format string, args ...any) {
	d.Outcome, d.Reason = outcome, NewReason(code, format, args...)
}

func (d *Decision) finish(r batchState) {
	switch {
	case len(r.failed) > 0:
		d.startNothing(OutcomeFailed, CodeStepFailed, "%s failed, all others have settled", r.describeSteps(r.failed))
	case r.done == 0:
		d.startNothing(Completed, CodeNothingLeft, "nothing to do")
	default:
		d.startNothing(Completed, CodeNothingLeft, "all done")
	}
}
