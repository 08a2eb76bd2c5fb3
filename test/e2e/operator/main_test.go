// Package operator_test looks at Fairlead as its users do: the binary, the chart and the API of a real cluster.
//
// One cluster and one operator of the passage revision serve most tests. Operators that tests start beside that one run
// another passage. Tests that need a cluster without an operator, or an operator that may do everything in it, share others.
package operator_test

import (
	"os"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

func TestMain(m *testing.M) {
	cluster.Parallel(6)
	os.Exit(cluster.Run(m, cluster.Options{KeepNamespaces: true}))
}

// memberCluster is what a hub of these tests manages.
func memberCluster(t testing.TB, hub *cluster.Cluster) *cluster.Cluster {
	t.Helper()
	name := "member of " + hub.Dir
	return cluster.Several(t, map[string]cluster.Options{name: {KeepNamespaces: true}})[name]
}
