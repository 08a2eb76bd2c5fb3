package launch

import (
	"context"
	"fmt"
	"time"
)

// How long Attempt waits between two tries: less at first, for what comes soon, and more later, for many who wait at the
// same time keep a small machine busy.
const (
	shortestPause = 25 * time.Millisecond
	longestPause  = 250 * time.Millisecond
)

// Attempt tries until it works, and returns the last error when the time is up.
func Attempt(ctx context.Context, within time.Duration, try func(context.Context) error) error {
	deadline := time.Now().Add(within)
	// The last try is not cut off, so that it can say what is missing.
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(10*time.Second))
	defer cancel()
	for pause := shortestPause; ; pause = min(pause*5/4, longestPause) {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", within, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
