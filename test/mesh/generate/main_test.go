// Package generate_test looks at what the mesh holds because of what runs, as people see it: they apply Services, workloads
// and Dataplanes to a cluster, and look at what is made of them.
//
// One cluster serves all tests, one after the other: each has a registrar, a mesh and namespaces of its own.
package generate_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/test/cluster"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(cluster.RunWith(m, cluster.Options{KeepNamespaces: true}))
}
