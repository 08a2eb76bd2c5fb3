package cli

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
)

func newRetryCommand(c *connect.Flags, streams Streams) *cobra.Command {
	kinds := newKinds()
	return &cobra.Command{
		Use:     "retry TYPE NAME",
		Short:   "Retry the steps of a resource that have failed",
		Long:    "Let the operator retry the steps of a resource that have failed. Other steps are not affected.",
		Example: "  fairlead retry istio default\n  fairlead retry mesh default",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, r, k, err := resolve(c, kinds, args)
			if err != nil {
				return err
			}
			retrier, ok := k.(kind.Retrier)
			if h, hints := k.(kind.RetryHinter); hints {
				return console.UsageErrorf("there is nothing to retry for %s: %s", r.Kind().Kind, h.RetryHint())
			}
			if !ok {
				return unsupported[kind.Retrier](cmd, kinds, r)
			}
			return retrier.Retry(cmd.Context(), cluster, r, streams.Out)
		},
	}
}
