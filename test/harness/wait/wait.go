// Package wait has tests wait for what must happen, however long it takes.
//
// A deadline in a test only catches "never". There is one for all tests, and it grows with the machine: a cluster that was
// slow to start makes it longer. FAIRLEAD_PATIENCE=3 multiplies it by 3 instead, whatever the machine.
package wait

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// Variable names the environment variable that sets the factor of the deadline.
const Variable = "FAIRLEAD_PATIENCE"

const (
	// never is the deadline on a machine that starts a cluster in no more than usualStart.
	never = 3 * time.Minute
	// usualStart is how long a cluster takes to start on two quiet cores.
	usualStart = 6 * time.Second
)

// How long Until pauses between two tries: little at first, for what comes soon, and more later, for many that wait at the
// same time keep a small machine busy.
const (
	shortestPause = 25 * time.Millisecond
	longestPause  = 250 * time.Millisecond
)

var slowestStart atomic.Int64

// ClusterStarted tells how long a cluster took to start, which is what the deadline scales with.
func ClusterStarted(took time.Duration) {
	for {
		slowest := slowestStart.Load()
		if int64(took) <= slowest || slowestStart.CompareAndSwap(slowest, int64(took)) {
			return
		}
	}
}

// Deadline is how long it takes to conclude that something never happens.
func Deadline() time.Duration {
	return time.Duration(factor(os.Getenv(Variable), time.Duration(slowestStart.Load())) * float64(never))
}

func factor(set string, start time.Duration) float64 {
	if chosen, err := strconv.ParseFloat(set, 64); err == nil && chosen > 0 {
		return chosen
	}
	return max(1, float64(start)/float64(usualStart))
}

// Permanent marks an error after which no further try can work, so that Try returns it at once.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Until tries until it works, and fails the test with the last error if it never does.
func Until(t testing.TB, try func(context.Context) error) {
	t.Helper()
	if err := Try(t.Context(), try); err != nil {
		t.Fatal(err)
	}
}

// Try tries until it works, and returns the last error if it never does.
func Try(ctx context.Context, try func(context.Context) error) error {
	limit := Deadline()
	began := time.Now()
	// The last try is not cut off, so that it can say what is missing.
	ctx, cancel := context.WithTimeout(ctx, limit+limit/10)
	defer cancel()
	for pause := shortestPause; ; pause = min(pause*5/4, longestPause) {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if errors.As(err, new(permanent)) {
			return err
		}
		if time.Since(began) > limit {
			return fmt.Errorf("not within %s: %w", limit, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
