package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/localkube/internal/supervisor"
)

func newDownCommand() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "Stop every process of a cluster; its data stays",
		Args:  noArgs,
	}
	dir := dirFlag(cmd)
	cmd.Flags().BoolVar(&remove, "delete", false, "delete its data, certificates and logs too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := dir()
		if err != nil {
			return err
		}
		if !d.Exists() {
			cmd.Printf("nothing to stop: no cluster was ever started in %s\n", d)
			return nil
		}
		client := supervisor.NewClient(d)
		running := client.Running()
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Minute)
		defer cancel()
		if err := client.Stop(ctx); err != nil {
			return fmt.Errorf("stop the cluster in %s: %w", d, err)
		}
		if running {
			cmd.Printf("stopped: %s\n", d)
		} else {
			cmd.Printf("nothing to stop: the cluster in %s is not running\n", d)
		}
		if !remove {
			return nil
		}
		if err := d.Delete(); err != nil {
			return err
		}
		cmd.Printf("deleted: %s\n", d)
		return nil
	}
	return cmd
}
