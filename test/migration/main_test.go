// Package migration_test looks at how workloads move to the active revision, as their owners and the owner of the mesh
// see it: they apply YAML to a cluster where the operator works with the chart's permissions, and watch.
//
// Tests and subtests carry the words of the design's test plan. One cluster and one operator serve all tests but those
// that disturb one of them. Each test has an Istio of its own, and namespaces that choose its revisions.
package migration_test

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
	if err := flag.Set("test.parallel", "12"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := cluster.Run(m)
	if shared.scratch != "" {
		_ = os.RemoveAll(shared.scratch)
	}
	os.Exit(code)
}
