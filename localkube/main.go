// Command localkube runs a real Kubernetes on one machine, from Go modules
// alone: no containers, no downloads, nothing outside 127.0.0.1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/version"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
	"github.com/fairlead/fairlead/localkube/internal/program"
)

func main() {
	// A component's arguments are its own and are not read here.
	if len(os.Args) > 3 && os.Args[1] == "component" {
		os.Exit(program.Run(os.Args[2], os.Args[4:]))
	}
	// Kubernetes declares flags for whatever program it is linked into; this one has its own.
	pflag.CommandLine = pflag.NewFlagSet("localkube", pflag.ContinueOnError)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		if text := err.Error(); text != "" {
			fmt.Fprintln(os.Stderr, "error: "+text)
		}
		var usage usageError
		if errors.As(err, &usage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// usageError is a command that was typed wrongly: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "localkube",
		Short:         "A real Kubernetes (and Istio) on one machine, from Go modules",
		Version:       "with Kubernetes " + version.Get().GitVersion,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetOut(os.Stdout)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		newUpCommand(), newDownCommand(), newStatusCommand(),
		newServeCommand(), newIstiodCommand(), newChartsCommand(), newKubectlCommand(),
		newSuperviseCommand(),
	)
	return root
}

// withDir adds --dir to a command, which runs with that directory and takes no arguments.
func withDir(cmd *cobra.Command, run func(*cobra.Command, clusterdir.Dir) error) *cobra.Command {
	var path string
	cmd.Flags().StringVar(&path, "dir", "", "directory of the cluster")
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, err := clusterdir.At(path)
		if err != nil {
			return usageError{err}
		}
		return run(cmd, dir)
	}
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unknown argument %q: `%s --help` tells what there is", args[0], cmd.CommandPath())}
	}
	return nil
}
