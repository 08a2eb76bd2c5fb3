package cli

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
)

func newRetryCommand(c *connect.Flags, streams Streams) *cobra.Command {
	return newChangeCommand(&cobra.Command{
		Use:     "retry TYPE NAME",
		Short:   "Retry the steps of a resource that have failed",
		Long:    "Let the operator retry the steps of a resource that have failed. Other steps are not affected.",
		Example: "  fairlead retry istio default\n  fairlead retry mesh default",
	}, c, streams, nil, kind.Retrier.Retry)
}
