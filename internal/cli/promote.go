package cli

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
)

func newPromoteCommand(c *connect.Flags, streams Streams) *cobra.Command {
	return newChangeCommand(&cobra.Command{
		Use:   "promote TYPE NAME",
		Short: "Promote the next generation of a rollout",
		Long: `Promote the next generation of a rollout. The command shows the generation, and asks. A generation that has not caught up
yet is promoted as soon as its pods are ready.

The command sets spec.forcePromote to the hash of the rollout: if the spec changes meanwhile, nothing is promoted. A
spec.forcePromote from before the rollout has no effect, and is removed first.`,
		Example: "  fairlead promote mzs production -n shop\n  fairlead promote mzs production -n shop --yes",
	}, c, streams, &console.Confirmation{}, kind.Promoter.Promote)
}
