package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/checks"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
)

func newCheckCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var format render.Format
	var pre bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether Fairlead can work in a cluster, and does",
		Long: `Check whether Fairlead can work in a cluster, and does: the version of Kubernetes, permissions, CRDs and their
owners, controllers of other systems and the webhooks that they leave, the operator, its webhook and certificate, charts,
member clusters and proxies.

With --pre, only what matters before an installation. Nothing is changed.

Exit codes: 0 nothing has failed, 1 something has, or the cluster cannot be reached, 2 wrong usage.`,
		Example: "  fairlead check --pre\n  fairlead check -o json",
		Args:    console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := c.Connect()
			if err != nil {
				return err
			}
			now := time.Now()
			facts, err := checks.Observe(cmd.Context(), cluster.Config, pre, now)
			if err != nil {
				return err
			}
			lines := checks.Judge(facts, pre, now)
			report := struct {
				OK    bool          `json:"ok"`
				Lines []checks.Line `json:"checks"`
			}{!checks.HasFailed(lines), lines}
			if err := format.Print(streams.Out, report, func() { printChecks(streams.Out, lines) }); err != nil {
				return err
			}
			if !report.OK {
				return console.ExitError{Code: console.ExitFailed}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&pre, "pre", pre, "check what matters before Fairlead is installed")
	format.AddFlag(cmd, render.JSON, render.YAML)
	return cmd
}

func printChecks(w io.Writer, lines []checks.Line) {
	var rows [][]string
	counts := map[checks.State]int{}
	for _, line := range lines {
		text := line.Message
		if line.Action != "" {
			text += ". To do: " + line.Action
		}
		rows = append(rows, []string{string(line.State), line.Check, text})
		counts[line.State]++
	}
	render.Table(w, render.Columns, []string{"STATE", "CHECK", "WHAT"}, rows)
	fmt.Fprintf(w, "\n%d ok, %d warnings, %d failed, %d unknown\n", counts[checks.OK], counts[checks.Warning], counts[checks.Failed], counts[checks.Unknown])
}
