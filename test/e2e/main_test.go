// Package e2e_test looks at Fairlead as its users do: the binary, the chart and the API of a real cluster.
//
// An operator works in the whole cluster, so that tests that share one do not run in parallel. Those that take long have
// a cluster of their own, and run beside each other.
package e2e_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/test/cluster"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	cluster.Parallel(4)
	os.Exit(cluster.RunWith(m, cluster.Options{Profile: "hub", KeepNamespaces: true}))
}
