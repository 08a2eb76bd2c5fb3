package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/operator/lease"
	"github.com/fairlead/fairlead/internal/operator/uninstall"
)

func newUninstallCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var (
		timeout time.Duration
		confirm console.Confirmation
	)
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Release everything that depends on Fairlead, and leave it running",
		Long: `Release everything that depends on Fairlead, and leave it running, before or after 'helm uninstall'.

The operator of the chart is scaled to 0, and one that runs elsewhere is waited for. Then the finalizers of
Fairlead are removed, and the owner references by which the garbage collector would delete what Fairlead has
installed. Nothing else is changed: control planes, workloads, environments and the objects in member clusters
go on as they are. The objects of Fairlead's kinds stay until their CRDs are deleted.

With --dry-run, it only shows what it does.`,
		Example: "  fairlead uninstall --dry-run\n  fairlead uninstall && helm uninstall fairlead -n fairlead-system",
		Args:    console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := confirm.RequireTerminal(cmd, streams.In); err != nil {
				return err
			}
			cluster, err := c.Connect()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			observed, err := uninstall.Observe(ctx, cluster.Config, cluster.Client)
			if err != nil {
				return err
			}
			plan := uninstall.Decide(observed)
			printUninstallPlan(streams.Out, plan)
			if confirm.DryRun {
				fmt.Fprintln(streams.Out, "\nNothing was changed.")
				return nil
			}
			fmt.Fprintln(streams.Out)
			if err := confirm.Ask(cmd.Context(), streams, "Uninstall? Everything that runs keeps running."); err != nil {
				return err
			}
			released := plan
			err = uninstall.Apply(ctx, cluster.Config, cluster.Client, plan, uninstall.Options{
				Waiting: func(holders []lease.Holder) { printHolders(streams.Err, holders) }, Confirmed: func(p uninstall.Plan) { released = p },
			})
			if errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("%w (--timeout is %s)", err, timeout)
			}
			if err != nil {
				return err
			}
			printUninstalled(streams.Out, released)
			return nil
		},
	}
	cmd.Flags().BoolVar(&confirm.DryRun, "dry-run", false, "show what would be released, and change nothing")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait for operators to end, and for everything to be released")
	confirm.AddFlag(cmd)
	return cmd
}

func printUninstallPlan(w io.Writer, plan uninstall.Plan) {
	if len(plan.Rows) == 0 {
		fmt.Fprintln(w, "There is no object of Fairlead's kinds.")
	} else {
		var rows [][]string
		for _, row := range plan.Rows {
			rows = append(rows, []string{row.Passage, row.Kind, strconv.Itoa(row.Objects), count(row.Finalizers), keeps(row)})
		}
		render.Table(w, render.Columns, []string{"PASSAGE", "KIND", "OBJECTS", "FINALIZERS", "KEEPS"}, rows)
	}
	if summary := plan.Summary(); len(summary) > 0 {
		fmt.Fprintln(w, "\nTo be done, once no operator acts:")
		for _, line := range summary {
			fmt.Fprintln(w, "-", line)
		}
	}
	for _, group := range plan.Unreadable {
		fmt.Fprintf(w, "\nThe API %s does not answer: objects there that have an owner of Fairlead's kinds are not released.\n", group)
	}
}

func keeps(row uninstall.Row) string {
	switch {
	case row.Foreign:
		return "the CRD was not installed by Fairlead"
	case row.KeepRunning > 0:
		if row.KeepRunning == 1 {
			return "1 installed object"
		}
		return fmt.Sprintf("%d installed objects", row.KeepRunning)
	case row.Kind == "Work":
		return "the object in its cluster, with its labels"
	}
	return "-"
}

func count(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func printHolders(w io.Writer, holders []lease.Holder) {
	leases := map[string][]string{}
	for _, h := range holders {
		leases[h.Identity] = append(leases[h.Identity], h.Lease)
	}
	for _, operator := range slices.Sorted(maps.Keys(leases)) {
		fmt.Fprintf(w, "waiting until operator %s has ended, or its leases have run out: %s\n", operator, strings.Join(leases[operator], ", "))
	}
}

func printUninstalled(w io.Writer, plan uninstall.Plan) {
	fmt.Fprintf(w, "removed the owner references of %d objects, and the finalizers of %d\n", len(plan.Owners), len(plan.Finalizers))
	for _, crd := range plan.Conversions {
		if len(crd.Stored) > 0 {
			fmt.Fprintf(w, "%s may have objects stored as %s, which nothing converts to %s now: do not change them without an operator\n",
				crd.Name, strings.Join(crd.Stored, ", "), crd.Kind.Version)
		}
	}
	if len(plan.CRDs) == 0 {
		return
	}
	objects := 0
	for _, row := range plan.Rows {
		objects += row.Objects
	}
	fmt.Fprintf(w, "\nLeft are %d objects of Fairlead's kinds, which no operator acts on. To delete them and their CRDs:\n\n  kubectl delete crd %s\n",
		objects, strings.Join(plan.CRDs, " \\\n    "))
}
