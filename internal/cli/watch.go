package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
)

func newWatchCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var wait bool
	var timeout time.Duration
	kinds := newKinds()
	cmd := &cobra.Command{
		Use:   "watch TYPE NAME",
		Short: "Follow the progress of a resource",
		Long: `Follow the progress of a resource: as a live view on a terminal, otherwise line by line. Ctrl-C ends only the watch.

With --wait the watch ends when nothing is left to do. It does not wait for the grace period of unused control planes, and
it does wait for a rollout that has to be promoted.

Exit codes with --wait: 0 done, 1 failed, 3 still in progress at the timeout.`,
		Example: "  fairlead watch istio default\n  fairlead watch mzs production -n shop --wait --timeout 30m\n  fairlead watch pp deployments-pp -n shop --wait\n  fairlead watch mesh default --wait",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return console.UsageErrorf("--timeout %s is negative", timeout)
			}
			r, k, err := resolve(c, kinds, args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			if timeout > 0 {
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			w, err := kind.NewWatch(ctx, k, r)
			if err == nil {
				err = watch(ctx, w, render.NewRenderer(streams.Out), wait)
			}
			var exit console.ExitError
			if err != nil && ctx.Err() != nil && !errors.As(err, &exit) {
				return timeoutError(ctx, wait, "")
			}
			return r.NotFoundOr(err)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "end when nothing is left to do; the exit code is the result")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "end after this long (0: never)")
	return cmd
}

// minRedrawInterval is between two drawings at least.
const minRedrawInterval = 200 * time.Millisecond

func watch(ctx context.Context, w kind.Watch, renderer render.Renderer, wait bool) error {
	defer renderer.End()
	for {
		status, err := w.Status(ctx)
		if err != nil {
			return err
		}
		renderer.Draw(status)
		if err := status.WaitError(); wait && console.ExitCode(err, true) != console.ExitUnfinished {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(minRedrawInterval):
			select {
			case <-ctx.Done():
			case <-w.Changed:
			case <-time.After(w.Interval):
			}
		}
		if ctx.Err() != nil {
			return timeoutError(ctx, wait, status.TimeoutHint())
		}
	}
}

// timeoutError is the error of a watch that has timed out, with what may keep the operator from finishing. It is nil for one
// that was interrupted, or does not wait.
func timeoutError(ctx context.Context, wait bool, hint string) error {
	if !wait || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	message := "still in progress when the timeout was over"
	if hint != "" {
		message += "; " + hint
	}
	return console.ExitError{Code: console.ExitUnfinished, Message: message}
}
