package passage

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// FuzzNext reads any bytes as a record, however senseless, and checks that the
// promises hold all the same: also after the decision was carried out in part.
func FuzzNext(f *testing.F) {
	f.Add([]byte{}, 0, int64(0), false, false, int64(0))
	f.Add([]byte("a plan of some thirty bytes..."), 3, int64(30*time.Second), false, false, int64(20*time.Second))
	f.Add([]byte("another one, which fails fast."), 2, int64(time.Second), true, false, int64(time.Hour))
	f.Add([]byte("\x01\xff\x80\x00\x03\x7f\xfe\x20\x11"), -1, int64(-1), false, true, int64(-1))
	f.Add([]byte("clocks that run out of numbers"), 1<<62, int64(1<<63-1), false, false, int64(-1<<63))

	f.Fuzz(func(t *testing.T, record []byte, size int, delay int64, failFast, held bool, clock int64) {
		plan := planOf(stepsFrom(record))
		if held {
			plan.Hold = Hold("Paused", "paused")
		}
		batching := Batching{Size: size, Delay: time.Duration(delay), FailFast: failFast}
		now := epoch.Add(time.Duration(clock))

		d := Next(plan, batching, now)
		for _, violation := range violations(plan, batching, now, d) {
			t.Error(violation)
		}
		if !slices.Equal(stepsFrom(record), plan.Steps) {
			t.Error("the plan given was changed")
		}
		if again := Next(plan, batching, now); !reflect.DeepEqual(d, again) {
			t.Errorf("asked twice, two answers:\n%s", cmp.Diff(d, again))
		}
		if NewView(d, now).Headline == "" {
			t.Error("a view without a headline")
		}
		if e := EstimateOf(plan, batching, now); e.Batches < 0 || e.Delays < 0 {
			t.Errorf("estimated %+v", e)
		}

		// Killed half way through: the rest must still follow the rules.
		started := map[Object]bool{}
		for _, step := range d.Start[:len(d.Start)/2] {
			started[step.Object] = true
		}
		for i := range d.Plan.Steps {
			if step := &d.Plan.Steps[i]; started[step.Object] {
				step.State, step.StartedAt = Running, now
			}
		}
		after := Next(d.Plan, batching, now)
		for _, violation := range violations(d.Plan, batching, now, after) {
			t.Errorf("after a crash: %s", violation)
		}
	})
}

// stepsFrom makes a step of each three bytes, of as many as can make a difference.
func stepsFrom(record []byte) []Step {
	states := []State{Pending, "", Running, Running, Done, Failed, Skipped, Later, "Unheard-of"}
	batches := []int{0, 1, 1, 2, 2, 3, -1, 1<<31 - 1, 1<<31 - 2, 1<<63 - 1, -1 << 63}
	ends := []time.Time{{}, epoch, at(10), at(20), at(-1e6), at(1e9), time.Unix(1<<62, 0), time.Unix(-1<<62, 0)}

	var steps []Step
	record = record[:min(len(record), 3*100)]
	for i := 0; i+2 < len(record); i += 3 {
		kind, state, number := record[i], record[i+1], int(record[i+2])
		step := Step{
			Object:     Object{Kind: "Deployment", Name: string(rune('a' + i))},
			Disruptive: kind%4 != 0,
			Disturbed:  kind%4 != 0 && kind > 192,
			Priority:   int(kind/4)%3 - 1,
			State:      states[int(state)%len(states)],
			Batch:      batches[number%len(batches)],
			EndedAt:    ends[number/len(batches)%len(ends)],
		}
		switch {
		case state > 120 && state < 130:
			step.Held = true
		case state > 150 && state < 160:
			step.OverdueSince = ends[number%len(ends)]
		case state > 200:
			step.Priority = -1 << 63
		}
		steps = append(steps, step)
	}
	return steps
}
