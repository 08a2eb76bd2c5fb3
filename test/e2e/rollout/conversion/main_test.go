// Package conversion_test looks at environments of Materialize that are written in two versions of the API: those that
// another operator has left behind, stored as v1alpha1, and those that came later. Tests and subtests carry the words of
// the design.
//
// One cluster serves all tests, and another one the stories. What the other operator has left is there before Fairlead
// comes, which converts, stores and looks after all of it at once. A test that disturbs the operator runs before those that only use it.
package conversion_test

import (
	"os"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

func TestMain(m *testing.M) {
	cluster.Parallel(12)
	os.Exit(cluster.Run(m, options))
}

// options of the clusters.
var options = cluster.Options{KeepNamespaces: true}
