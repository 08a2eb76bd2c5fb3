package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
)

func newStatusCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var format render.Format
	var policies bool
	kinds := newKinds()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd := &cobra.Command{
		Use:   "status TYPE NAME",
		Short: "Show the progress of a resource",
		Long: `Show the progress of a resource.

With --policies, for a Dataplane: which policies apply to its destinations, and why others do not.

Exit codes: 0 done, 1 failed, 3 still in progress.`,
		Example: "  fairlead status istio default\n  fairlead status mzs production -n shop\n  fairlead status pp deployments-pp -n shop\n  fairlead status mesh default\n  fairlead status dataplane cart-1 -n shop --policies\n  fairlead status istio default -o json",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if policies {
				return explainPolicies(cmd.Context(), c, kinds, args, streams.Out, format)
			}
			if given := changedFlag(flags); given != "" {
				return console.UsageErrorf("--%s is only for --policies", given)
			}
			cluster, r, k, err := resolve(c, kinds, args)
			if err != nil {
				return err
			}
			status, err := k.Status(cmd.Context(), cluster, r)
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
	for _, k := range kinds {
		if e, ok := k.(kind.PolicyExplainer); ok {
			e.AddExplainFlags(flags)
		}
	}
	cmd.Flags().AddFlagSet(flags)
	return cmd
}

func changedFlag(flags *pflag.FlagSet) (name string) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			name = flag.Name
		}
	})
	return name
}

func explainPolicies(ctx context.Context, c *connect.Flags, kinds kind.Registry, args []string, out io.Writer, format render.Format) error {
	for _, k := range kinds {
		e, ok := k.(kind.PolicyExplainer)
		if !ok {
			continue
		}
		if err := e.ValidateExplainFlags(); err != nil {
			return err
		}
		cluster, err := c.Connect()
		if err != nil {
			return err
		}
		r, err := cluster.Resolve(args)
		if err != nil {
			return err
		}
		return e.ExplainPolicies(ctx, cluster, r, out, format)
	}
	return nil
}
