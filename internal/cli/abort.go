package cli

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
)

func newAbortCommand(c *connect.Flags, streams Streams) *cobra.Command {
	return newChangeCommand(&cobra.Command{
		Use:   "abort TYPE NAME",
		Short: "Abort a rollout, release what a policy has taken over, or switch the consumers of a mesh back",
		Long: `Abort what the operator does about a resource. The command shows what changes, and asks.

Materialize: restore the spec of the active generation. Only the fields that cause the rollout are restored, and
spec.forcePromote is removed. A promotion that has started cannot be aborted.

PropagationPolicy, ClusterPropagationPolicy: release the objects that the policy has taken over in clusters, and restore
their originals. Objects that Fairlead has created stay, and so do the resources on the hub.

Mesh: switch all consumers back, in batches of the same size, as ` + "`fairlead migrate mesh NAME --revert`" + ` does.`,
		Example: "  fairlead abort mzs production -n shop\n  fairlead abort mzs production -n shop --yes\n  fairlead abort pp deployments-pp -n shop\n  fairlead abort mesh default",
	}, c, streams, &console.Confirmation{}, kind.Aborter.Abort)
}
