package cli

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
)

func newPromoteCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var confirm console.Confirmation
	kinds := newKinds()
	cmd := &cobra.Command{
		Use:   "promote TYPE NAME",
		Short: "Promote the next generation of a rollout",
		Long: `Promote the next generation of a rollout. The command shows the generation, and asks. A generation that has not caught up
yet is promoted as soon as its pods are ready.

The command sets spec.forcePromote to the hash of the rollout: if the spec changes meanwhile, nothing is promoted. A
spec.forcePromote from before the rollout has no effect, and is removed first.`,
		Example: "  fairlead promote mzs production -n shop\n  fairlead promote mzs production -n shop --yes",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirm.RequireTerminal(cmd, streams.In); err != nil {
				return err
			}
			cluster, r, promoter, err := resolveAs[kind.Promoter](cmd, c, kinds, args)
			if err != nil {
				return err
			}
			return promoter.Promote(cmd.Context(), cluster, r, streams, &confirm)
		},
	}
	confirm.AddFlag(cmd)
	return cmd
}
