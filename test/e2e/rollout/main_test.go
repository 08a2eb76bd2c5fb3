// Package rollout_test looks at how environments of Materialize are rolled out, as their owners see it: they apply a
// resource to a cluster where the operator works with the chart's permissions, and watch. What their pods would run is
// played by the package environmentd.
//
// One cluster and one operator serve all tests, and each test has a namespace of its own. A test that ends the operator is
// not parallel to any other.
package rollout_test

import (
	"os"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

func TestMain(m *testing.M) {
	cluster.Parallel(8)
	os.Exit(cluster.Run(m, cluster.Options{KeepNamespaces: true}))
}
