package cli

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/operator"
)

func newServeMeshCommand(c *connect.Flags, streams Streams) *cobra.Command {
	options := operator.DefaultServeMeshOptions()
	cmd := &cobra.Command{
		Use:   "serve-mesh",
		Short: "Serve the proxies of a mesh in the foreground",
		Long: `Serve the proxies of a mesh their configuration (xDS), beside an operator that runs with --mesh-serving-reports.

Any number of such processes serve at a time. A proxy may connect to any of them, and to another one when that has ended. Each writes
to MeshServingReports what its proxies have acknowledged, from which the operator knows when it may switch the next consumers.`,
		Example: "  fairlead serve-mesh --mesh-bind-address 127.0.0.1:5678 --mesh-cert-file tls.crt --mesh-key-file tls.key",
		Args:    console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.Validate(); err != nil {
				return console.UsageErrorf("%v", err)
			}
			config, err := c.Config()
			if err != nil {
				return err
			}
			operator.TuneGarbageCollection(cmd.Context())
			log := operator.NewLogger(streams.Err, options.Process.LogFormat, options.Process.LogLevel)
			return operator.ServeMesh(cmd.Context(), config, options, log)
		},
	}
	options.AddFlags(cmd.Flags())
	return cmd
}
