package cli

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
)

func newMigrateCommand(c *connect.Flags, streams Streams) *cobra.Command {
	confirm := &console.Confirmation{}
	var dryRun bool
	kinds := newKinds()
	cmd := &cobra.Command{
		Use:   "migrate TYPE NAME",
		Short: "Switch the consumers of a Mesh over to MeshServices, batch by batch, or back",
		Long: `Switch the consumers of a Mesh over to MeshServices, batch by batch, or back. It shows the batches, and asks.

It records what is wanted on the Mesh; the operator does it. A batch is done when all proxies that were connected when it
opened have acknowledged what they were given. A refusal, or a proxy that is lost, stops it. No pod restarts, and a consumer
that was switched stays so when its pods are replaced. Without --consumers it is about all of them, those to come included.

What was asked for before is replaced by it: what is switched stays so, what waited waits for its turn anew.`,
		Example: `  fairlead migrate mesh default --batch-size 10 --delay 30s
  fairlead migrate mesh default --consumers shop/Deployment/cart,shop/Deployment/pay
  fairlead migrate mesh default --batch-size 10 --dry-run
  fairlead migrate mesh default --revert --batch-size 10`,
		Args: connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, k := range kinds {
				if m, ok := k.(kind.Migrator); ok {
					if err := m.ValidateMigrateFlags(); err != nil {
						return err
					}
				}
			}
			if dryRun {
				confirm = nil
			} else if err := confirm.RequireTerminal(cmd, streams.In); err != nil {
				return err
			}
			cluster, r, k, err := resolve(c, kinds, args)
			if err != nil {
				return err
			}
			migrator, ok := k.(kind.Migrator)
			if !ok {
				return unsupported[kind.Migrator](cmd, kinds, r)
			}
			return migrator.Migrate(cmd.Context(), cluster, r, streams, confirm)
		},
	}
	for _, k := range kinds {
		if m, ok := k.(kind.Migrator); ok {
			m.AddMigrateFlags(cmd.Flags())
		}
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the batches, and ask for nothing")
	confirm.AddFlag(cmd)
	return cmd
}
