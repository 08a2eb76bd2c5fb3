package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
	"github.com/fairlead/fairlead/localkube/internal/supervisor"
)

func newServeCommand() *cobra.Command {
	var service, to string
	var remove bool
	cmd := &cobra.Command{
		Use:   "serve --dir DIR --service NS/NAME:PORT --to 127.0.0.1:PORT",
		Short: "Put a local process behind a Service",
		Long: `Put a local process behind a Service: the API server's calls to that port of
the Service (webhooks, conversion, aggregated APIs) then reach the process. The
Service may come later. It stays so until it is removed, through restarts too.`,
	}
	cmd.Flags().StringVar(&service, "service", "", "the Service and its port, as NS/NAME:PORT")
	cmd.Flags().StringVar(&to, "to", "", "address of the process, on 127.0.0.1")
	cmd.Flags().BoolVar(&remove, "remove", false, "take the process away again")
	return withDir(cmd, func(cmd *cobra.Command, dir clusterdir.Dir) error {
		serve, err := clusterdir.ParseService(service)
		if err == nil && !remove {
			serve.To, err = clusterdir.ParseLocal(to)
		}
		if err != nil {
			return usageError{err}
		}
		if err := supervisor.NewClient(dir).Serve(cmd.Context(), serve); err != nil {
			return err
		}
		if remove {
			cmd.Printf("Service %s is served by no local process\n", service)
			return nil
		}
		cmd.Printf("Service %s is served by %s\n", service, to)
		return nil
	})
}
