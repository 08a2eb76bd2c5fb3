package passage

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNext(t *testing.T) {
	steps := func(steps ...Step) []Step { return steps }
	paused := Hold("Paused", "paused by fairlead.dev/paused")
	threes := Batching{Size: 3, Delay: 30 * time.Second}
	failFast := Batching{Size: 3, Delay: 30 * time.Second, FailFast: true}

	// want is a decision in short: steps as "name" or "name@batch", times in
	// seconds from the epoch.
	type want struct {
		outcome  Outcome
		start    string
		wait     string
		forecast string
		batches  string
		look     int
		code     Code
	}
	cases := map[string]struct {
		steps    []Step
		batching Batching
		hold     *Reason
		now      int
		want     want
	}{
		"nothing to do": {
			batching: threes,
			want:     want{outcome: Completed, batches: "0/0", code: CodeNothingLeft},
		},
		"fewer steps than the batch size": {
			steps: deploys("a b"), batching: threes,
			want: want{outcome: InProgress, start: "a@1 b@1", batches: "1/1"},
		},
		"the first batch opens without a delay": {
			steps: deploys("a b c d e f g"), batching: threes,
			want: want{outcome: InProgress, start: "a@1 b@1 c@1", forecast: "d@2 e@2 f@2 g@3", batches: "1/3"},
		},
		"an empty state is pending": {
			steps: deploys("a", state("")), batching: threes,
			want: want{outcome: InProgress, start: "a@1", batches: "1/1"},
		},
		"a batch on a pending step is only a forecast": {
			steps: steps(deploy("a", func(s *Step) { s.Batch = 9 })), batching: threes,
			want: want{outcome: InProgress, start: "a@1", batches: "1/1"},
		},
		"size zero is one": {
			steps: deploys("a b"), batching: Batching{},
			want: want{outcome: InProgress, start: "a@1", forecast: "b@2", batches: "1/2"},
		},
		"negative size is one and negative delay is none": {
			steps:    steps(deploy("a", done(1, 10)), deploy("b"), deploy("c")),
			batching: Batching{Size: -3, Delay: -time.Hour}, now: 10,
			want: want{outcome: InProgress, start: "b@2", forecast: "c@3", batches: "2/3"},
		},

		"relabels all start at once and before any batch": {
			steps: steps(deploy("a"), relabel("n1"), relabel("n2"), relabel("n3"), relabel("n4")), batching: threes,
			want: want{outcome: InProgress, start: "n1 n2 n3 n4", forecast: "a@1", batches: "0/1"},
		},
		"batches wait for relabels to settle": {
			steps: steps(relabel("n1", state(Running)), relabel("n2", state(Done)), deploy("a")), batching: threes,
			want: want{outcome: InProgress, wait: "n1", forecast: "a@1", batches: "0/1", code: CodePreparing},
		},
		"a failed relabel has settled": {
			steps: steps(relabel("n1", state(Failed)), deploy("a")), batching: threes,
			want: want{outcome: InProgress, start: "a@1", batches: "1/1"},
		},
		"a relabel found midway starts at once, and the open batch is not filled up before it settled": {
			steps: steps(deploy("a", running(1)), deploy("b"), relabel("n1")), batching: threes, now: 5,
			want: want{outcome: InProgress, start: "n1", wait: "a", forecast: "b@1", batches: "1/1"},
		},

		"a full batch is waited for": {
			steps:    steps(deploy("a", running(1)), deploy("b", running(1)), deploy("c", running(1)), deploy("d")),
			batching: threes, now: 5,
			want: want{outcome: InProgress, wait: "a b c", forecast: "d@2", batches: "1/2", code: CodeBatchRunning},
		},
		"a batch is not refilled as its members settle": {
			steps:    steps(deploy("a", done(1, 10)), deploy("b", failed(1, 10)), deploy("c", running(1)), deploy("d")),
			batching: threes, now: 60,
			want: want{outcome: InProgress, wait: "c", forecast: "d@2", batches: "1/2", code: CodeBatchRunning},
		},
		"a batch cut off while it was started is filled up": {
			steps:    steps(deploy("a", running(1)), deploy("b"), deploy("c"), deploy("d")),
			batching: threes, now: 5,
			want: want{outcome: InProgress, start: "b@1 c@1", wait: "a", forecast: "d@2", batches: "1/2"},
		},
		"filling up counts members that have settled": {
			steps:    steps(deploy("a", done(1, 10)), deploy("b", running(1)), deploy("c"), deploy("d")),
			batching: threes, now: 12,
			want: want{outcome: InProgress, start: "c@1", wait: "b", forecast: "d@2", batches: "1/2"},
		},
		"filling up goes on when all members have settled, after the delay": {
			steps:    steps(deploy("a", done(1, 10)), deploy("b"), deploy("c"), deploy("d"), deploy("e")),
			batching: threes, now: 12,
			want: want{outcome: Delaying, forecast: "b@1 c@1 d@2 e@2", batches: "1/2", look: 40, code: CodeBatchDelay},
		},
		"and then ends in the batch that it would have had": {
			steps:    steps(deploy("a", done(1, 10)), deploy("b"), deploy("c"), deploy("d"), deploy("e")),
			batching: threes, now: 40,
			want: want{outcome: InProgress, start: "b@1 c@1", forecast: "d@2 e@2", batches: "1/2"},
		},
		"no batch is filled up with another priority": {
			steps:    steps(deploy("a", running(1)), deploy("b", priority(2))),
			batching: threes, now: 5,
			want: want{outcome: InProgress, wait: "a", forecast: "b@2", batches: "1/2", code: CodeBatchRunning},
		},
		"nor is one whose members were given different priorities meanwhile": {
			steps:    steps(deploy("a", running(1)), deploy("b", running(1), priority(2)), deploy("c")),
			batching: threes, now: 5,
			want: want{outcome: InProgress, wait: "a b", forecast: "c@2", batches: "1/2", code: CodeBatchRunning},
		},
		"that an earlier batch is mixed does not matter": {
			steps: steps(deploy("a", done(1, 10)), deploy("b", done(1, 10), priority(2)),
				deploy("c", running(2)), deploy("d")),
			batching: Batching{Size: 2}, now: 60,
			want: want{outcome: InProgress, start: "d@2", wait: "c", batches: "2/2"},
		},
		"nor before a step that should have gone first": {
			steps:    steps(deploy("a", running(1), priority(5)), deploy("b", priority(5)), deploy("urgent")),
			batching: threes, now: 5,
			want: want{outcome: InProgress, wait: "a", forecast: "b@3 urgent@2", batches: "1/3", code: CodeBatchRunning},
		},

		"the next batch waits for the delay": {
			steps:    steps(deploy("a", done(1, 10)), deploy("b", failed(1, 20)), deploy("c", done(1, 15)), deploy("d")),
			batching: threes, now: 49,
			want: want{outcome: Delaying, forecast: "d@2", batches: "1/2", look: 50, code: CodeBatchDelay},
		},
		"and opens when it is over": {
			steps:    steps(deploy("a", done(1, 10)), deploy("b", failed(1, 20)), deploy("c", done(1, 15)), deploy("d")),
			batching: threes, now: 50,
			want: want{outcome: InProgress, start: "d@2", batches: "2/2"},
		},
		"without a delay it opens at once": {
			steps:    steps(deploy("a", done(1, 10)), deploy("b")),
			batching: Batching{Size: 1}, now: 10,
			want: want{outcome: InProgress, start: "b@2", batches: "2/2"},
		},
		"no delay after the last batch": {
			steps:    steps(deploy("a", done(1, 10)), deploy("b", done(1, 10))),
			batching: threes, now: 10,
			want: want{outcome: Completed, batches: "1/1", code: CodeNothingLeft},
		},
		"what needed no restart opens no batch and asks for no delay": {
			steps:    steps(deploy("a", done(0, 10)), deploy("b")),
			batching: threes, now: 10,
			want: want{outcome: InProgress, start: "b@1", batches: "1/1"},
		},
		"all of it needed no restart": {
			steps: deploys("a b", state(Done)), batching: threes,
			want: want{outcome: Completed, batches: "0/0", code: CodeNothingLeft},
		},
		"skipped steps are nobody's business, even with a batch on them": {
			steps:    steps(deploy("a", state(Skipped), func(s *Step) { s.Batch = 7 }), deploy("b")),
			batching: threes,
			want:     want{outcome: InProgress, start: "b@1", batches: "1/1"},
		},

		"lower priorities first, and each in batches of its own": {
			steps: steps(deploy("a", priority(9)), deploy("b", priority(-1)), deploy("c"), deploy("d", priority(9)),
				deploy("e"), deploy("f"), deploy("g")),
			batching: threes,
			want: want{outcome: InProgress, start: "b@1", forecast: "a@4 c@2 d@4 e@2 f@2 g@3",
				batches: "1/4"},
		},

		"size was lowered below what runs": {
			steps:    steps(deploy("a", running(1)), deploy("b", running(1)), deploy("c", running(1)), deploy("d")),
			batching: Batching{Size: 2}, now: 5,
			want: want{outcome: InProgress, wait: "a b c", forecast: "d@2", batches: "1/2", code: CodeBatchRunning},
		},
		"size was raised while a batch is open": {
			steps:    steps(deploy("a", running(1)), deploy("b", running(1)), deploy("c"), deploy("d")),
			batching: threes, now: 5,
			want: want{outcome: InProgress, start: "c@1", wait: "a b", forecast: "d@2", batches: "1/2"},
		},
		"what runs in no batch is waited for before one opens": {
			steps:    steps(deploy("old", running(0)), deploy("a"), deploy("b")),
			batching: threes, now: 5,
			want: want{outcome: InProgress, wait: "old", forecast: "a@1 b@1", batches: "0/1", code: CodeBatchRunning},
		},
		"what runs in no batch leaves less room in the open one": {
			steps:    steps(deploy("old", running(0)), deploy("a", running(1)), deploy("b"), deploy("c")),
			batching: threes, now: 5,
			want: want{outcome: InProgress, start: "b@1", wait: "old a", forecast: "c@1", batches: "1/1"},
		},
		"what runs in no batch may leave none at all": {
			steps:    steps(deploy("old", running(0)), deploy("a", running(1)), deploy("b")),
			batching: Batching{Size: 2}, now: 5,
			want: want{outcome: InProgress, wait: "old a", forecast: "b@1", batches: "1/1", code: CodeBatchRunning},
		},
		"an earlier batch that still runs keeps the next one closed": {
			steps:    steps(deploy("a", running(1)), deploy("b", done(2, 10)), deploy("c", done(2, 10)), deploy("d")),
			batching: Batching{Size: 2}, now: 60,
			want: want{outcome: InProgress, wait: "a", forecast: "d@3", batches: "2/3", code: CodeBatchRunning},
		},
		"and leaves less room in the last one": {
			steps:    steps(deploy("a", running(1)), deploy("b", running(2)), deploy("c"), deploy("d")),
			batching: threes, now: 60,
			want: want{outcome: InProgress, start: "c@2", wait: "a b", forecast: "d@2", batches: "2/2"},
		},
		"a batch that no plan can reach is not counted on from": {
			steps:    steps(deploy("a", done(math.MaxInt, 10)), deploy("b", done(math.MinInt, 10)), deploy("c")),
			batching: threes, now: 60,
			want: want{outcome: InProgress, start: "c@1", batches: "1/1"},
		},
		"a batch on a relabel means nothing": {
			steps:    steps(relabel("n1", done(5, 10)), deploy("a")),
			batching: threes, now: 11,
			want: want{outcome: InProgress, start: "a@1", batches: "1/1"},
		},
		"a state from the future is waited for": {
			steps:    steps(deploy("a", state("Verifying")), deploy("b")),
			batching: threes,
			want:     want{outcome: InProgress, wait: "a", forecast: "b@1", batches: "0/1", code: CodeBatchRunning},
		},

		"the whole of the last batch was deleted": {
			steps:    steps(deploy("a", done(1, 10)), deploy("c"), deploy("d")),
			batching: Batching{Size: 1}, now: 60,
			want: want{outcome: InProgress, start: "c@2", forecast: "d@3", batches: "2/3"},
		},
		"a deleted member makes room in the open batch": {
			steps:    steps(deploy("a", running(1)), deploy("c", running(1)), deploy("d")),
			batching: threes, now: 5,
			want: want{outcome: InProgress, start: "d@1", wait: "a c", batches: "1/1"},
		},
		"a member deleted after its batch settled does not cut the delay short": {
			steps:    steps(deploy("a", done(1, 10)), deploy("c", done(1, 10)), deploy("d")),
			batching: threes, now: 20,
			want: want{outcome: Delaying, forecast: "d@1", batches: "1/1", look: 40, code: CodeBatchDelay},
		},
		"a gap in the record is kept": {
			steps:    steps(deploy("a", done(1, 10)), deploy("d", running(4)), deploy("e")),
			batching: Batching{Size: 1}, now: 20,
			want: want{outcome: InProgress, wait: "d", forecast: "e@5", batches: "4/5", code: CodeBatchRunning},
		},
		"a workload that appears late gets a batch": {
			steps:    steps(deploy("a", done(1, 10)), deploy("b", running(2)), deploy("late")),
			batching: Batching{Size: 1}, now: 20,
			want: want{outcome: InProgress, wait: "b", forecast: "late@3", batches: "2/3", code: CodeBatchRunning},
		},
		"a retried step takes its place again if its batch was the last": {
			steps:    steps(deploy("a", done(1, 10)), deploy("b"), deploy("c", done(2, 50))),
			batching: Batching{Size: 2}, now: 100,
			want: want{outcome: InProgress, start: "b@2", batches: "2/2"},
		},
		"and gets a new batch if the last one is full": {
			steps:    steps(deploy("a"), deploy("b", done(2, 50)), deploy("c", done(2, 50))),
			batching: Batching{Size: 2}, now: 100,
			want: want{outcome: InProgress, start: "a@3", batches: "3/3"},
		},

		"a failure does not stop the others": {
			steps:    steps(deploy("a", failed(1, 10)), deploy("b")),
			batching: Batching{Size: 1}, now: 10,
			want: want{outcome: InProgress, start: "b@2", batches: "2/2"},
		},
		"and is the outcome at the end": {
			steps:    steps(deploy("a", failed(1, 10)), deploy("b", done(2, 20))),
			batching: Batching{Size: 1}, now: 20,
			want: want{outcome: OutcomeFailed, batches: "2/2", code: CodeStepFailed},
		},
		"fail fast starts nothing more, not even to fill up, and waits for what runs": {
			steps:    steps(deploy("a", failed(1, 10)), deploy("b", running(1)), deploy("c"), deploy("d")),
			batching: failFast, now: 12,
			want: want{outcome: Stopped, wait: "b", forecast: "c@1 d@2", batches: "1/2", code: CodeStepFailed},
		},
		"fail fast with nothing running": {
			steps:    steps(deploy("a", failed(1, 10)), deploy("b", done(1, 10)), deploy("c")),
			batching: Batching{Size: 2, FailFast: true}, now: 600,
			want: want{outcome: Stopped, forecast: "c@2", batches: "1/2", code: CodeStepFailed},
		},
		"fail fast stops at a failed relabel too": {
			steps:    steps(relabel("n1", state(Failed)), relabel("n2"), deploy("a")),
			batching: failFast,
			want:     want{outcome: Stopped, forecast: "n2 a@1", batches: "0/1", code: CodeStepFailed},
		},
		"fail fast does not stop relabels, which disturb nothing": {
			steps:    steps(relabel("n1"), deploy("a", failed(1, 10)), deploy("b", running(1)), deploy("c")),
			batching: failFast, now: 12,
			want: want{outcome: InProgress, start: "n1", wait: "b", forecast: "c@1", batches: "1/1"},
		},
		"fail fast has nothing to stop in the last batch": {
			steps:    steps(deploy("a", failed(1, 10)), deploy("b", running(1))),
			batching: failFast, now: 12,
			want: want{outcome: InProgress, wait: "b", batches: "1/1", code: CodeBatchRunning},
		},
		"fail fast that failed in the last batch": {
			steps:    steps(deploy("a", failed(1, 10)), deploy("b", done(1, 20))),
			batching: failFast, now: 20,
			want: want{outcome: OutcomeFailed, batches: "1/1", code: CodeStepFailed},
		},

		"what is disturbed already goes first, all of it, beyond the size and whatever its priority": {
			steps:    steps(deploy("a"), deploy("b", disturbed), deploy("c", disturbed, priority(9)), deploy("d", disturbed)),
			batching: Batching{Size: 2, Delay: 30 * time.Second},
			want:     want{outcome: InProgress, start: "b@1 d@1 c@1", forecast: "a@2", batches: "1/2"},
		},
		"after the labels": {
			steps:    steps(relabel("n1"), deploy("a"), deploy("b", disturbed)),
			batching: threes,
			want:     want{outcome: InProgress, start: "n1", forecast: "a@1 b@1", batches: "0/1"},
		},
		"the batch of what was disturbed is filled up to its size": {
			steps:    steps(deploy("a"), deploy("b", disturbed, running(1)), deploy("c"), deploy("d")),
			batching: threes, now: 5,
			want: want{outcome: InProgress, start: "a@1 c@1", wait: "b", forecast: "d@2", batches: "1/2"},
		},
		"nothing else starts while more run than the size": {
			steps:    steps(deploy("a"), deploy("b", disturbed, running(1)), deploy("c", disturbed, running(1)), deploy("d", disturbed, running(1))),
			batching: Batching{Size: 2}, now: 5,
			want: want{outcome: InProgress, wait: "b c d", forecast: "a@2", batches: "1/2", code: CodeBatchRunning},
		},
		"a batch of disturbed steps that was cut off goes on at once": {
			steps:    steps(deploy("a"), deploy("b", disturbed, done(1, 10)), deploy("c", disturbed)),
			batching: Batching{Size: 1, Delay: time.Hour}, now: 12,
			want: want{outcome: InProgress, start: "c@1", forecast: "a@2", batches: "1/2"},
		},
		"one that is found later joins the last batch": {
			steps:    steps(deploy("a", done(1, 10)), deploy("b", running(2)), deploy("c", disturbed), deploy("d")),
			batching: Batching{Size: 1}, now: 12,
			want: want{outcome: InProgress, start: "c@2", wait: "b", forecast: "d@3", batches: "2/3"},
		},
		"a failure of another does not hold it": {
			steps:    steps(deploy("a", failed(0, 10)), deploy("b", disturbed), deploy("c")),
			batching: failFast, now: 12,
			want: want{outcome: InProgress, start: "b@1", forecast: "c@1", batches: "1/1"},
		},
		"a hold does": {
			steps:    steps(deploy("b", disturbed), deploy("c")),
			batching: threes, hold: paused,
			want: want{outcome: Held, forecast: "b@1 c@1", batches: "0/1", code: "Paused"},
		},

		"an overdue step does not hold the next batch": {
			steps:    steps(deploy("a", running(1), overdue(60)), deploy("b", done(1, 10)), deploy("c"), deploy("d"), deploy("e")),
			batching: Batching{Size: 2}, now: 60,
			want: want{outcome: InProgress, start: "c@2 d@2", wait: "a", forecast: "e@3", batches: "2/3"},
		},
		"the delay counts from when it was overdue": {
			steps:    steps(deploy("a", running(1), overdue(60)), deploy("b", done(1, 10)), deploy("c")),
			batching: Batching{Size: 2, Delay: 30 * time.Second}, now: 70,
			want: want{outcome: Delaying, wait: "a", forecast: "c@2", batches: "1/2", look: 90, code: CodeBatchDelay},
		},
		"and not from when it settles in the end": {
			steps:    steps(deploy("a", done(1, 95), overdue(60)), deploy("b", done(1, 10)), deploy("c")),
			batching: Batching{Size: 2, Delay: 30 * time.Second}, now: 96,
			want: want{outcome: InProgress, start: "c@2", batches: "2/2"},
		},
		"the plan ends when it has settled": {
			steps:    steps(deploy("a", running(1), overdue(60)), deploy("b", done(1, 10))),
			batching: threes, now: 600,
			want: want{outcome: InProgress, wait: "a", batches: "1/1", code: CodeBatchRunning},
		},

		"a step that waits for something of its own holds no other": {
			steps:    steps(deploy("a", heldByTag), deploy("b"), deploy("c")),
			batching: Batching{Size: 1},
			want:     want{outcome: InProgress, start: "b@1", forecast: "a c@2", batches: "1/2"},
		},
		"and is all that is left": {
			steps:    steps(deploy("a", heldByTag), deploy("b", done(1, 10)), deploy("c", heldByTag)),
			batching: threes, now: 600,
			want: want{outcome: Held, forecast: "a c", batches: "1/1", code: "TagNotMoved"},
		},
		"also one that is disturbed already": {
			steps:    steps(deploy("a", heldByTag, disturbed), deploy("b")),
			batching: threes,
			want:     want{outcome: InProgress, start: "b@1", forecast: "a", batches: "1/1"},
		},

		"held before it began": {
			steps: steps(relabel("n1"), deploy("a")), batching: threes, hold: paused,
			want: want{outcome: Held, forecast: "n1 a@1", batches: "0/1", code: "Paused"},
		},
		"held midway waits for what runs": {
			steps:    steps(deploy("a", running(1)), deploy("b"), deploy("c"), deploy("d")),
			batching: threes, hold: paused, now: 5,
			want: want{outcome: Held, wait: "a", forecast: "b@1 c@1 d@2", batches: "1/2", code: "Paused"},
		},
		"held with nothing left to start": {
			steps: steps(deploy("a", running(1))), batching: threes, hold: paused, now: 5,
			want: want{outcome: Held, wait: "a", batches: "1/1", code: "Paused"},
		},
		"held after the end changes nothing": {
			steps: steps(deploy("a", done(1, 10))), batching: threes, hold: paused, now: 15,
			want: want{outcome: Completed, batches: "1/1", code: CodeNothingLeft},
		},
		"held with no steps is not done: it may be that none could be planned": {
			batching: threes, hold: paused,
			want: want{outcome: Held, batches: "0/0", code: "Paused"},
		},
		"held and stopped: stopped is what a resume would find": {
			steps:    steps(deploy("a", failed(1, 10)), deploy("b")),
			batching: Batching{Size: 1, FailFast: true}, hold: paused, now: 15,
			want: want{outcome: Stopped, forecast: "b@2", batches: "1/2", code: CodeStepFailed},
		},

		"a clock a little ahead is waited for": {
			steps:    steps(deploy("a", done(1, 25)), deploy("b")),
			batching: Batching{Size: 1, Delay: 30 * time.Second}, now: 20,
			want: want{outcome: Delaying, forecast: "b@2", batches: "1/2", look: 55, code: CodeBatchDelay},
		},
		"an end further ahead than the delay is not": {
			steps:    steps(deploy("a", done(1, 86400)), deploy("b")),
			batching: Batching{Size: 1, Delay: 30 * time.Second}, now: 20,
			want: want{outcome: InProgress, start: "b@2", batches: "2/2"},
		},
		"the others' ends still count then": {
			steps:    steps(deploy("a", done(1, 86400)), deploy("b", done(1, 15)), deploy("c")),
			batching: Batching{Size: 2, Delay: 30 * time.Second}, now: 20,
			want: want{outcome: Delaying, forecast: "c@2", batches: "1/2", look: 45, code: CodeBatchDelay},
		},
		"an end that nobody recorded cannot be counted from": {
			steps:    steps(deploy("a", done(1, 0), func(s *Step) { s.EndedAt = time.Time{} }), deploy("b")),
			batching: Batching{Size: 1, Delay: 30 * time.Second}, now: 20,
			want: want{outcome: InProgress, start: "b@2", batches: "2/2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := planOf(tc.steps)
			plan.Hold = tc.hold
			now := at(tc.now)

			got := Next(plan, tc.batching, now)
			for _, violation := range violations(plan, tc.batching, now, got) {
				t.Error(violation)
			}

			var later []Step
			for _, step := range got.Plan.Steps {
				if step.State == Pending && !slices.Contains(got.Start, step) {
					later = append(later, step)
				}
			}
			short := want{
				outcome:  got.Outcome,
				start:    inShort(got.Start),
				wait:     inShort(got.Wait),
				forecast: inShort(later),
				batches:  fmt.Sprintf("%d/%d", got.Batch, got.Batches),
			}
			if !got.RequeueAt.IsZero() {
				short.look = int(got.RequeueAt.Sub(epoch).Seconds())
			}
			if got.Reason != nil {
				short.code = got.Reason.Code
			}
			if diff := cmp.Diff(tc.want, short, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// inShort lists steps as "name@batch", or as "name" where no batch is to be told.
func inShort(steps []Step) string {
	var names []string
	for _, step := range steps {
		name := step.Object.Name
		if step.State == Pending && step.Batch != 0 {
			name += fmt.Sprintf("@%d", step.Batch)
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}
