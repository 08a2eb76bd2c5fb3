package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/cli/versions"
	"github.com/fairlead/fairlead/internal/version"
)

// versionTimeout is how long a cluster may take to answer who wants to know a version, unless --request-timeout says otherwise.
const versionTimeout = 5 * time.Second

func newVersionCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var format render.Format
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of this fairlead, the operator and the CRDs",
		Long: `Show the versions of this fairlead, of the operators of the cluster and of its CRDs, and whether they fit.

The operator that leads a passage records its version in the Lease of the passage. What you may not read, or cannot reach, is unknown.

Exit codes: 0 all fits or is unknown, 1 something does not fit; the output says what to do.`,
		Example: "  fairlead version\n  fairlead version --client -o json",
		Args:    console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := versions.Report{Client: version.Get()}
			if !clientOnly {
				operators, crds := observeVersions(cmd.Context(), c)
				report = versions.Compare(report.Client, operators, crds)
			}
			if err := format.Print(streams.Out, report, func() { report.Print(streams.Out) }); err != nil {
				return err
			}
			if report.Fits != nil && !*report.Fits {
				return console.ExitError{Code: console.ExitFailed}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", clientOnly, "show the version of this fairlead only, without asking the cluster")
	format.AddFlag(cmd, render.JSON, render.YAML)
	return cmd
}

func observeVersions(ctx context.Context, c *connect.Flags) ([]versions.Operator, versions.CRDs) {
	config, err := c.Config()
	if err != nil {
		return versions.Unknown(err)
	}
	if config.Timeout == 0 {
		config.Timeout = versionTimeout
	}
	return versions.Observe(ctx, config, time.Now())
}
