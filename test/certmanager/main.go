// Command cert-manager runs those of cert-manager's own controllers that issue a certificate which signs itself, for
// tests of what the chart asks for. It is a module of its own, so that cert-manager stays out of Fairlead's dependencies.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of the cluster")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig: kubeconfig, KubernetesAPIQPS: 100, KubernetesAPIBurst: 200,
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Second,
			CertificateRequestMaximumBackoffDuration: time.Minute,
		},
	})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	base, err := factory.Build()
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	var all []controller.Interface
	for _, name := range []string{
		issuers.ControllerName, trigger.ControllerName, keymanager.ControllerName, requestmanager.ControllerName,
		approver.ControllerName, selfsigned.CRControllerName, issuing.ControllerName, readiness.ControllerName,
		revisionmanager.ControllerName,
	} {
		made, err := controller.Known()[name](factory)
		if err != nil {
			return fmt.Errorf("make the controller %s: %w", name, err)
		}
		all = append(all, made)
	}
	base.SharedInformerFactory.Start(ctx.Done())
	base.KubeSharedInformerFactory.Start(ctx.Done())
	var group sync.WaitGroup
	errs := make([]error, len(all))
	for i, c := range all {
		group.Go(func() { errs[i] = c.Run(1, ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}
