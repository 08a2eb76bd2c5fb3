// Package adoption_test takes over what runs in clusters as a platform engineer does: through the API of a hub that two
// members have joined, and with the commands.
//
// One hub, two members and one operator serve all tests, and a second hub those that need one. Tests that disturb one of them
// run one after the other, before those that run side by side. Each has a namespace of its own, which is the same on the hub
// and in the members.
package adoption_test

import (
	"os"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

func TestMain(m *testing.M) {
	cluster.Parallel(8)
	os.Exit(cluster.Run(m, cluster.Options{}))
}
