// Package revision_test looks at control planes and tags as their users do: they apply YAML to a cluster where the
// operator works with the chart's permissions, and see what becomes of it.
//
// One cluster and one operator serve all tests. Each test has names and namespaces of its own; only what is called
// "default" means the same to everybody, so that tests of it must not run in parallel with others.
package revision_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/test/cluster"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	flag.Parse()
	// Tests wait for the cluster more than they work.
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := cluster.Run(m)
	if shared.scratch != "" {
		_ = os.RemoveAll(shared.scratch)
	}
	os.Exit(code)
}
