package passage

import (
	"encoding/json"
	"math"
	"slices"
	"time"
)

// Estimate is what a plan takes at the least, however fast its steps are.
type Estimate struct {
	// Batches is how many there are in all.
	Batches int
	// Delays is the time still to be spent between them.
	Delays time.Duration
}

// EstimateOf forecasts a plan that goes on from where it is, with nothing failing.
func EstimateOf(plan Plan, batching Batching, now time.Time) Estimate {
	plan.Hold, batching.FailFast = nil, false
	next := Next(plan, batching, now)

	// Each batch to come has a delay before it, but the first of all has none, and
	// the one that is being waited for has what is left of it.
	gaps := next.Batches - max(next.Batch, 1)
	if next.Outcome != Delaying {
		return Estimate{next.Batches, times(gaps, batching.Delay)}
	}
	if !next.fillsUp() {
		gaps--
	}
	left := next.RequeueAt.Sub(now)
	return Estimate{next.Batches, left + min(times(gaps, batching.Delay), math.MaxInt64-left)}
}

// fillsUp reports whether the last batch has members to come.
func (d Decision) fillsUp() bool {
	return slices.ContainsFunc(d.Plan.Steps, func(s Step) bool {
		return s.State == Pending && s.Disruptive && s.Batch == d.Batch
	})
}

func times(n int, d time.Duration) time.Duration {
	switch {
	case n <= 0 || d <= 0:
		return 0
	case d > math.MaxInt64/time.Duration(n):
		return math.MaxInt64
	default:
		return time.Duration(n) * d
	}
}

// MarshalJSON writes the time the way a delay is written in a manifest: "1m30s".
func (e Estimate) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Batches int    `json:"batches"`
		Delays  string `json:"delays"`
	}{e.Batches, e.Delays.String()})
}
