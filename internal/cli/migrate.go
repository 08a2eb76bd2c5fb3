package cli

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
)

func newMigrateCommand(c *connect.Flags, streams Streams) *cobra.Command {
	confirm := &console.Confirmation{}
	cmd := &cobra.Command{
		Use:   "migrate TYPE NAME",
		Short: "Switch the consumers of a Mesh over to MeshServices, batch by batch, or back",
		Long: `Switch the consumers of a Mesh over to MeshServices, batch by batch, or back. The command shows the batches, and asks.

The command records the request in an annotation of the Mesh, and the operator executes it. A batch is complete when all
proxies that were connected at its start have acknowledged their configuration. A proxy that rejects its configuration or
disconnects stops the migration. No pod restarts, and a switched consumer stays switched when its pods are replaced. Without
--consumers, all consumers are switched, including future ones.

A new request replaces the previous one: switched consumers stay switched, and waiting consumers get new batches.`,
		Example: `  fairlead migrate mesh default --batch-size 10 --delay 30s
  fairlead migrate mesh default --consumers shop/Deployment/cart,shop/Deployment/pay
  fairlead migrate mesh default --batch-size 10 --dry-run
  fairlead migrate mesh default --batch-size 10 --allow-disconnected
  fairlead migrate mesh default --revert --batch-size 10`,
	}
	cmd.Flags().BoolVar(&confirm.DryRun, "dry-run", false, "show the batches, and record no request")
	return newChangeCommand(cmd, c, streams, confirm, kind.Migrator.Migrate)
}
