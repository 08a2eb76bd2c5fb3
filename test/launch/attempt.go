package launch

import (
	"context"
	"fmt"
	"time"
)

// Attempt tries until it works, and returns the last error when the time is up.
func Attempt(ctx context.Context, within time.Duration, try func(context.Context) error) error {
	deadline := time.Now().Add(within)
	// The last try is not cut off, so that it can say what is missing.
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(10*time.Second))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", within, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}
