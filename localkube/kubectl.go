package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// newKubectlCommand carries kubectl along, for machines that have none. It is
// made only when it is called: kubectl looks at the whole command line, and
// would take localkube's own commands for plugins of its own.
func newKubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl",
		Short:              "Kubernetes' own command line, for machines that have none",
		DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) {
			signal.Reset(os.Interrupt, syscall.SIGTERM)
			os.Args = append([]string{"kubectl"}, args...)
			if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
				util.CheckErr(err)
			}
		},
	}
}
