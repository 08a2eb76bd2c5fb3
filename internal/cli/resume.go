package cli

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
)

func newResumeCommand(c *connect.Flags, streams Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "resume TYPE NAME",
		Short:   "Resume a paused resource",
		Example: "  fairlead resume istio default\n  fairlead resume mzs production -n shop\n  fairlead resume mesh default",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return setPaused(cmd.Context(), c, streams, args, false)
		},
	}
}
