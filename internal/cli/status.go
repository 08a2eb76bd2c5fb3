package cli

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
)

func newStatusCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var format render.Format
	var policies bool
	kinds := newKinds()
	cmd := &cobra.Command{
		Use:   "status TYPE NAME",
		Short: "Show the progress of a resource",
		Long: `Show the progress of a resource.

With --policies, for a Dataplane: which policies apply to its destinations, and why others do not.

Exit codes: 0 done, 1 failed, 3 still in progress.`,
		Example: "  fairlead status istio default\n  fairlead status mzs production -n shop\n  fairlead status pp deployments-pp -n shop\n  fairlead status mesh default\n  fairlead status dataplane cart-1 -n shop --policies\n  fairlead status istio default -o json",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if flag, _ := kind.ForeignFlag(cmd.Flags(), ""); flag != "" && !policies {
				return console.UsageErrorf("--%s is only for --policies", flag)
			}
			if err := kinds.ValidateFlags(); err != nil {
				return err
			}
			r, err := c.Resolve(args)
			if err != nil {
				return suggestType(err, kinds)
			}
			if policies {
				return kind.First[kind.PolicyExplainer](kinds).ExplainPolicies(cmd.Context(), r, streams.Out, format)
			}
			k, err := kinds.Find(r)
			if err != nil {
				return err
			}
			status, err := k.Status(cmd.Context(), r.Cluster.Client, r)
			if err != nil {
				return r.NotFoundOr(err)
			}
			if err := format.Print(streams.Out, status, func() { render.PrintStatus(streams.Out, format, status) }); err != nil {
				return err
			}
			return status.ExitError()
		},
	}
	format.AddFlag(cmd, render.JSON, render.YAML, render.Wide)
	cmd.Flags().BoolVar(&policies, "policies", false, "for a Dataplane: show which policies apply to its destinations, and why")
	kinds.AddFlags(cmd)
	return cmd
}
