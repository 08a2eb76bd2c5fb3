package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
	"github.com/fairlead/fairlead/localkube/internal/supervisor"
)

func newDownCommand() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "Stop every process of a cluster; its data stays",
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "delete its data, certificates and logs too")
	return withDir(cmd, func(cmd *cobra.Command, dir clusterdir.Dir) error {
		if !dir.Exists() {
			cmd.Printf("nothing to stop: no cluster was ever started in %s\n", dir)
			return nil
		}
		client := supervisor.NewClient(dir)
		running := client.Running()
		ctx, cancel := context.WithTimeout(cmd.Context(), supervisor.Patient(2*time.Minute))
		defer cancel()
		if err := client.Stop(ctx); err != nil {
			return fmt.Errorf("stop the cluster in %s: %w", dir, err)
		}
		if running {
			cmd.Printf("stopped: %s\n", dir)
		} else {
			cmd.Printf("nothing to stop: the cluster in %s is not running\n", dir)
		}
		if !remove {
			return nil
		}
		if err := dir.Delete(); err != nil {
			return err
		}
		cmd.Printf("deleted: %s\n", dir)
		return nil
	})
}
