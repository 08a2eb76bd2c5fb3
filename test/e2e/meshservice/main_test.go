// Package meshservice_test takes a mesh from service tags to MeshServices as its operator does: Services and pods in a cluster,
// proxies that get their configuration from the operator, real calls between them, and the commands.
//
// One cluster and one operator serve all tests, in zone east. Tests that disturb the operator run one after the other,
// before those that run side by side. Each has a mesh and a namespace of its own. No pod runs anything: what it would
// serve, the test serves on an address of the loopback interface, and zone west is a server behind a ZoneIngress.
package meshservice_test

import (
	"os"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

func TestMain(m *testing.M) {
	cluster.Parallel(8)
	os.Exit(cluster.Run(m, cluster.Options{KeepNamespaces: true}))
}
