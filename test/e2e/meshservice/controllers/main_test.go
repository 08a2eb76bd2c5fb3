// Package controllers_test runs the controllers of the mesh in the test's own process, against a real API server: generate,
// which makes Dataplanes and MeshServices of what runs, consumers, which switches them over, and the plan, for which no controller runs.
//
// One cluster serves all tests, one after the other. Each has controllers, a mesh and namespaces of its own.
package controllers_test

import (
	"os"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, cluster.Options{KeepNamespaces: true}))
}
