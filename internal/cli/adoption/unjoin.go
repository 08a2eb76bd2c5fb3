package adoption

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
)

// NewUnjoinCommand removes a cluster from a hub.
func NewUnjoinCommand(c *connect.Flags, streams console.Streams) *cobra.Command {
	var (
		access  memberAccess
		how     member.UnjoinOptions
		timeout time.Duration
		confirm console.Confirmation
	)
	cmd := &cobra.Command{
		Use:   "unjoin NAME",
		Short: "Remove a cluster from the hub",
		Long: `Remove a cluster from the hub. Its objects keep running, and the labels and annotations of Fairlead are removed from them;
with --delete-resources, the objects are deleted instead.

With --member-kubeconfig, the roles of the hub in the cluster are deleted as well. A cluster that cannot be reached leaves
when it can be reached again; with --force it leaves immediately and unchanged.`,
		Example: "  fairlead unjoin west --member-kubeconfig west.kubeconfig\n  fairlead unjoin west --delete-resources",
		Args:    console.RequireName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirm.RequireTerminal(cmd, streams.In); err != nil {
				return err
			}
			if access.kubeconfig != "" {
				var err error
				if how.Member, err = access.config(); err != nil {
					return err
				}
			}
			hub, err := c.Connect()
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Remove cluster %s from the hub? Its objects keep running.", args[0])
			if how.DeleteResources {
				question = fmt.Sprintf("Remove cluster %s from the hub, and DELETE all objects there that this hub manages?", args[0])
			}
			if err := confirm.Ask(cmd.Context(), streams, question); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			id, err := model.HubID(ctx, hub.Client)
			if err != nil {
				return err
			}
			last := -1
			how.Progress = func(left int) {
				if left != last && left > 0 {
					fmt.Fprintf(streams.Err, "%d objects not yet released\n", left)
				}
				last = left
			}
			left, err := member.Unjoin(ctx, hub.Client, id, args[0], how)
			if err != nil {
				return fmt.Errorf("unjoin %s: %w", args[0], err)
			}
			fmt.Fprintf(streams.Out, "cluster.cluster.karmada.io/%s left\n", args[0])
			if left != "" {
				fmt.Fprintf(streams.Out, "left in the cluster: %s\n", left)
			}
			return nil
		},
	}
	access.addFlags(cmd)
	cmd.Flags().BoolVar(&how.DeleteResources, "delete-resources", false, "delete the objects that Fairlead manages in the cluster")
	cmd.Flags().BoolVar(&how.Abandon, "force", false, "for a cluster that cannot be reached: leave immediately, and do not change its objects")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait for the operator")
	cmd.MarkFlagsMutuallyExclusive("delete-resources", "force")
	confirm.AddFlag(cmd)
	return cmd
}
