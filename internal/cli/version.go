package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/version"
)

func newVersionCommand(streams Streams) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show which build of Fairlead this is",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			build := version.Get()
			return format.Print(streams.Out, build, func() {
				fmt.Fprintf(streams.Out, "fairlead %s (commit %s, %s, %s)\n", build.Version, build.Commit, build.GoVersion, build.Platform)
			})
		},
	}
	format.AddFlag(cmd, render.JSON, render.YAML)
	return cmd
}
