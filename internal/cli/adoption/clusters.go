package adoption

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
)

// NewClustersCommand lists the clusters of a hub.
func NewClustersCommand(c *connect.Flags, streams console.Streams) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:     "clusters",
		Short:   "List the clusters that have joined the hub",
		Long:    "List the clusters that have joined the hub, how many Works of each are applied, and why a cluster is not ready.",
		Example: "  fairlead clusters\n  fairlead clusters -o json",
		Args:    console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hub, err := c.Connect()
			if err != nil {
				return err
			}
			all, err := member.ListClusters(cmd.Context(), hub.Client)
			if err != nil {
				return err
			}
			return format.Print(streams.Out, all, func() { printClusters(streams.Out, format, all, time.Now()) })
		},
	}
	format.AddFlag(cmd, render.JSON, render.YAML, render.Wide)
	return cmd
}

func printClusters(w io.Writer, format render.Format, all []member.ClusterInfo, now time.Time) {
	if len(all) == 0 {
		fmt.Fprintln(w, "No cluster has joined: `fairlead join NAME --member-kubeconfig FILE` makes one a member.")
		return
	}
	var rows [][]string
	for _, e := range all {
		reason := ""
		if e.Reason != nil {
			reason = e.Reason.String()
		}
		rows = append(rows, []string{
			e.Name, string(e.Ready), render.OrDash(e.Version), e.APIEndpoint, fmt.Sprintf("%d/%d", e.Applied, e.Works),
			duration.HumanDuration(now.Sub(e.Joined)), reason,
		})
	}
	render.Table(w, format.Width(), []string{"NAME", "READY", "VERSION", "API", "APPLIED", "AGE", "REASON"}, rows)
}
