// Package revision_test looks at control planes and tags as their users do: they apply YAML to a cluster where the
// operator works with the chart's permissions, and see what becomes of it.
//
// One cluster and one operator serve all tests but those that look at the operator itself. Each test has names and
// namespaces of its own, and leaves behind what it made, which goes with the cluster; only what is called "default" means
// the same to all, so that tests of it run one after the other.
package revision_test

import (
	"os"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

func TestMain(m *testing.M) {
	cluster.Parallel(8)
	os.Exit(cluster.Run(m, cluster.Options{}))
}
