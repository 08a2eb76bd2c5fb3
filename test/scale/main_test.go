// Package scale_test measures Fairlead in a cluster of many, against a bound that holds in the same run.
package scale_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	if kubeconfig := os.Getenv(writerVariable); kubeconfig != "" {
		if err := writeEvents(kubeconfig, os.Getenv(revisionVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if address := os.Getenv(clientsVariable); address != "" {
		if err := connectUnidentified(address, os.Getenv(caVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(wait.Variable) == "" {
		os.Setenv(wait.Variable, "4") // what is measured here is large
	}
	os.Exit(cluster.Run(m, cluster.Options{}))
}
