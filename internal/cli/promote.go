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
		Short: "Let the generation take over that a rollout has made",
		Long: `Let the generation take over that a rollout has made: one that waits to be promoted, or one that has yet to
catch up, which is then not waited for. It shows what would be promoted, and asks.

It sets spec.forcePromote to the hash of that very rollout. If the spec changes meanwhile, nothing is promoted.
One that was there before the rollout does not count: it is removed first.`,
		Example: "  fairlead promote mzs production -n shop\n  fairlead promote mzs production -n shop --yes",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirm.RequireTerminal(cmd, streams.In); err != nil {
				return err
			}
			cluster, r, k, err := resolve(c, kinds, args)
			if err != nil {
				return err
			}
			promoter, ok := k.(kind.Promoter)
			if !ok {
				return unsupported[kind.Promoter](cmd, kinds, r)
			}
			return promoter.Promote(cmd.Context(), cluster, r, streams, &confirm)
		},
	}
	confirm.AddFlag(cmd)
	return cmd
}
