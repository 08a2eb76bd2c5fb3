package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/istio"
)

func newWatchCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "watch TYPE NAME",
		Short: "Follow what the operator does about a resource",
		Long: `Follow what the operator does about a resource: on a terminal as a picture that is kept up to
date, otherwise line by line. To stop watching stops nothing else.

With --wait it ends when all is where it should be; that a control plane which nothing uses any
more is deleted after its grace period is not waited for. A rollout that waits to be promoted is.

Exit codes with --wait: 0 done, 1 failed, 3 still in progress when the timeout was over.`,
		Example: "  fairlead watch istio default\n  fairlead watch mzs production -n shop --wait --timeout 30m\n  fairlead watch pp deployments-pp -n shop --wait\n  fairlead watch mesh default --wait",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return console.UsageErrorf("--timeout %s is negative", timeout)
			}
			cluster, r, err := resolveArgs(c, args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			if timeout > 0 {
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			return watchResource(ctx, cluster, r, newRenderer(streams.Out), wait)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "end when there is nothing left to do, with an exit code that tells how it went")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "end after this long (0: never)")
	return cmd
}

// renderer draws one report after the other.
type renderer interface {
	draw(statusReport)
}

func newRenderer(out io.Writer) renderer {
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return &tty{out: out, height: func() int {
			_, height, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return 0
			}
			return height
		}}
	}
	return &lineWriter{out: out}
}

// How often to draw at most, and at least: times pass without anything changing.
const (
	minRedrawInterval = 200 * time.Millisecond
	maxRedrawInterval = 5 * time.Second
)

func watchResource(ctx context.Context, c *connect.Cluster, r connect.Resource, a renderer, wait bool) error {
	look, err := newWatcher(ctx, c, r)
	if apierrors.IsNotFound(err) {
		return r.NotFound()
	}
	if err != nil {
		return watchError(ctx, err, wait)
	}
	for {
		result, err := look.report(ctx)
		if apierrors.IsNotFound(err) {
			return r.NotFound()
		}
		if err != nil {
			return watchError(ctx, err, wait)
		}
		report := newStatusReport(result, time.Now())
		a.draw(report)
		var exit console.ExitError
		outcome := statusExit(newStatusReport(result.withoutPruning(), report.At))
		if wait && (!errors.As(outcome, &exit) || exit.Code != console.ExitUnfinished) {
			return outcome
		}
		if wait && report.needsSpecChange() {
			return console.ExitError{Code: console.ExitFailed, Message: report.Workloads.Reason.Message}
		}
		if !sleep(ctx, minRedrawInterval) {
			return report.explainTimeout(watchError(ctx, nil, wait))
		}
		select {
		case <-ctx.Done():
			return report.explainTimeout(watchError(ctx, nil, wait))
		case <-look.changed:
		case <-time.After(maxRedrawInterval):
		}
	}
}

// needsSpecChange tells whether nothing moves until somebody changes the spec. One who has paused will go on.
func (r statusReport) needsSpecChange() bool {
	w := r.Workloads
	if !r.Reported || w == nil || w.State != passage.Held || w.Progress.Running > 0 || w.Reason == nil {
		return false
	}
	switch v1.Reason(w.Reason.Code) {
	case v1.ReasonMaxVersionExceeded, v1.ReasonInvalidSettings, v1.ReasonNotRevisionBased, v1.ReasonMigrationDisabled:
		return true
	}
	return false
}

// withoutPruning leaves out what is only waited for to be deleted: the grace period may be days.
func (a account) withoutPruning() account {
	a.Plan.Steps = slices.DeleteFunc(slices.Clone(a.Plan.Steps), func(s passage.Step) bool { return s.Action == istio.ActionPrune })
	return a
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// explainTimeout adds to how a watch ended what may keep things from moving.
func (r statusReport) explainTimeout(ended error) error {
	var exit console.ExitError
	switch {
	case !errors.As(ended, &exit):
		return ended
	case !r.Reported:
		exit.Message += "; the operator has not reported on the latest spec yet: is it running?"
	case r.Switching != nil && r.State == passage.InProgress:
		exit.Message += "; if nothing moves, see whether the operator runs"
	}
	return exit
}

// watchError is how a watch ends that was result to, or ran out of time.
func watchError(ctx context.Context, err error, wait bool) error {
	switch {
	case wait && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return console.ExitError{Code: console.ExitUnfinished, Message: "still in progress when the timeout was over"}
	case ctx.Err() != nil:
		return nil
	}
	return err
}
