package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
	"github.com/fairlead/fairlead/localkube/internal/supervisor"
)

// clusterStatus is what `status -o json` prints.
type clusterStatus struct {
	Dir        clusterdir.Dir      `json:"dir"`
	Profile    clusterdir.Profile  `json:"profile"`
	Kubeconfig string              `json:"kubeconfig"`
	Running    bool                `json:"running"`
	Healthy    bool                `json:"healthy"`
	Components []clusterdir.Record `json:"components"`
	Serves     []clusterdir.Serve  `json:"serves,omitempty"`
}

func newStatusCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status --dir DIR",
		Short: "Each component: alive, or how it died, and where its log is",
		Long:  "Each component: alive, or how it died, and where its log is.\n\nExits with 1 when the cluster is not running or a component has died.",
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json")
	return withDir(cmd, func(cmd *cobra.Command, dir clusterdir.Dir) error {
		if output != "" && output != "json" {
			return usageError{fmt.Errorf("unknown --output %q: it is json, or left out", output)}
		}
		if !dir.Exists() {
			return fmt.Errorf("no cluster was ever started in %s: `localkube up --dir %s` starts one", dir, dir)
		}
		status, err := observe(cmd.Context(), dir)
		if err != nil {
			return err
		}
		if output == "json" {
			encoder := json.NewEncoder(os.Stdout)
			encoder.SetIndent("", "  ")
			err = encoder.Encode(status)
		} else {
			err = printStatus(os.Stdout, status)
		}
		switch {
		case err != nil:
			return err
		case !status.Running:
			return fmt.Errorf("not running: `localkube up --dir %s` starts it again, with its data", dir)
		case !status.Healthy:
			return fmt.Errorf("not healthy: `localkube up --dir %s` heals it", dir)
		}
		return nil
	})
}

func observe(ctx context.Context, dir clusterdir.Dir) (clusterStatus, error) {
	settings, err := dir.LoadSettings()
	if err != nil {
		return clusterStatus{}, err
	}
	s := clusterStatus{Dir: dir, Profile: settings.Profile, Kubeconfig: dir.Kubeconfig(), Serves: settings.Serves}
	s.Components, s.Running, err = supervisor.NewClient(dir).Status(ctx)
	if err == nil && !s.Running {
		s.Components, err = lastKnown(dir)
	}
	s.Healthy = s.Running && allRunning(s.Components)
	return s, err
}

// lastKnown is what the supervisor wrote before it was gone. Whatever it had
// running then ended with it.
func lastKnown(dir clusterdir.Dir) ([]clusterdir.Record, error) {
	records, err := dir.LoadRecords()
	for i := range records {
		if records[i].State != clusterdir.Running && records[i].State != clusterdir.Waiting {
			continue
		}
		records[i].State, records[i].Detail = clusterdir.Dead, "ended with localkube"
		if records[i].Name == supervisor.Self {
			records[i].Detail = "killed"
		}
	}
	return records, err
}

func printStatus(out io.Writer, s clusterStatus) error {
	state := "running"
	switch {
	case !s.Running && slices.ContainsFunc(s.Components, func(r clusterdir.Record) bool { return r.State == clusterdir.Dead }):
		state = "dead"
	case !s.Running:
		state = "stopped"
	case !s.Healthy:
		state = "damaged"
	}
	fmt.Fprintf(out, "%s in %s: %s\n\n", s.Profile, s.Dir, state)

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tPID\tSTATE\tLOG")
	for _, r := range s.Components {
		pid := "-"
		if r.PID != 0 && r.State == clusterdir.Running {
			pid = fmt.Sprint(r.PID)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Name, pid, describe(r), r.Log)
	}
	for _, serve := range s.Serves {
		fmt.Fprintf(table, "service %s/%s:%d\t-\tserved by %s\t-\n", serve.Namespace, serve.Service, serve.Port, serve.To)
	}
	return table.Flush()
}

func describe(r clusterdir.Record) string {
	text := string(r.State)
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	if r.State == clusterdir.Dead && r.EndedAt != nil {
		text += " at " + r.EndedAt.Format(time.TimeOnly)
	}
	return text
}
