package cli

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
)

func newAbortCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var confirm console.Confirmation
	kinds := newKinds()
	cmd := &cobra.Command{
		Use:   "abort TYPE NAME",
		Short: "Take back a rollout that has not taken over yet, what a policy has taken over, or the switch of a mesh",
		Long: `Take back a rollout that has not taken over yet: the spec goes back to the one of the generation that serves.
It shows which fields that changes, and asks.

Fields that roll nothing out stay as they are, but for forcePromote: nobody means that for a rollout to come.

Of a PropagationPolicy, let go of all that it has taken over in clusters, and put back what that was before. What Fairlead
has made itself stays, and so do the resources on the hub.

Of a Mesh, let all consumers go back that were switched over, in batches of the same size: ` + "`fairlead migrate mesh NAME --revert`" + `.`,
		Example: "  fairlead abort mzs production -n shop\n  fairlead abort mzs production -n shop --yes\n  fairlead abort pp deployments-pp -n shop\n  fairlead abort mesh default",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirm.RequireTerminal(cmd, streams.In); err != nil {
				return err
			}
			cluster, r, k, err := resolve(c, kinds, args)
			if err != nil {
				return err
			}
			aborter, ok := k.(kind.Aborter)
			if !ok {
				return unsupported[kind.Aborter](cmd, kinds, r)
			}
			return aborter.Abort(cmd.Context(), cluster, r, streams, &confirm)
		},
	}
	confirm.AddFlag(cmd)
	return cmd
}
