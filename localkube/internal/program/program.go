// Package program holds the real programs of a control plane, each of which
// runs as a process of its own from this one binary.
package program

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"

	"github.com/fairlead/fairlead/localkube/internal/component"
)

// Run is the main function of a component; it returns the exit code.
func Run(name string, args []string) int {
	go dieWithParent(os.Stdin)
	os.Args = append([]string{name}, args...)
	switch name {
	case component.Etcd:
		etcdmain.Main(os.Args)
		return 0
	case component.APIServer:
		return cli.Run(apiserver.NewAPIServerCommand())
	case component.ControllerManager:
		return cli.Run(controllermanager.NewControllerManagerCommand())
	case component.Scheduler:
		return cli.Run(scheduler.NewSchedulerCommand())
	case component.Kwok:
		return runKwok()
	}
	fmt.Fprintf(os.Stderr, "unknown component %q\n", name)
	return 2
}

// dieWithParent ends this process when its supervisor is gone, however it went:
// the supervisor holds the other end of stdin and never writes to it. So no
// kill can leave orphans behind.
func dieWithParent(stdin io.Reader) {
	_, _ = io.Copy(io.Discard, stdin)
	_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	time.AfterFunc(3*time.Second, func() { os.Exit(1) })
}

// runKwok does what KWOK's own main does: its flags come in two sets, of which
// the first must be read before the command is made.
func runKwok() int {
	global := pflag.NewFlagSet("global", pflag.ContinueOnError)
	global.ParseErrorsAllowlist.UnknownFlags = true
	global.Usage = func() {}

	ctx, logger := kwoklog.InitFlags(signals.SetupSignalContext(), global)
	ctx, err := kwokconfig.InitFlags(ctx, global)
	if err != nil {
		logger.Error("Read the configuration", "err", err)
		return 1
	}
	command := kwok.NewCommand(ctx)
	command.Version = "" // its --version flag clashes with that of Kubernetes in one binary
	command.PersistentFlags().AddFlagSet(global)
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
