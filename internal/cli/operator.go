package cli

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/operator"
)

func newOperatorCommand(c *connect.Flags, streams Streams) *cobra.Command {
	options := operator.DefaultOptions()
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Run the operator in the foreground",
		Long: `Run the operator in the foreground, inside or outside of a cluster.

Its servers listen on free ports of 127.0.0.1, unless a flag sets another address; the log has the ports.`,
		Example: "  fairlead operator --kubeconfig ~/.kube/config --log-format text",
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
			log := operator.NewLogger(streams.Err, options.LogFormat, options.LogLevel)
			return operator.Run(cmd.Context(), config, options, log)
		},
	}
	options.AddFlags(cmd.Flags())
	complete := cobra.FixedCompletions(operator.Names(), cobra.ShellCompDirectiveNoFileComp)
	for _, flag := range []string{"passages", "take-over"} {
		if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err)
		}
	}
	return cmd
}
