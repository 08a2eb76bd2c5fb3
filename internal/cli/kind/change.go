package kind

import (
	"context"
	"fmt"
	"io"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
)

// Change is what a command does to a resource.
type Change struct {
	// Noop is why there is nothing to change; the other fields are empty then.
	Noop string
	// Show prints what is about to change, before the question. Without a question, the change is made at once.
	Show     func(io.Writer)
	Question string
	Apply    func(context.Context) error
	// Done is printed when the change is made.
	Done string
}

// Make shows the change, asks, and makes it.
func (change Change) Make(ctx context.Context, r connect.Resource, streams console.Streams, confirm *console.Confirmation) error {
	if change.Noop != "" {
		fmt.Fprintln(streams.Out, change.Noop)
		return nil
	}
	if change.Question != "" {
		change.Show(streams.Out)
		if confirm.DryRun {
			return nil
		}
		if err := confirm.Ask(ctx, streams, change.Question); err != nil {
			return err
		}
	}
	if err := change.Apply(ctx); err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	fmt.Fprintln(streams.Out, change.Done)
	return nil
}
