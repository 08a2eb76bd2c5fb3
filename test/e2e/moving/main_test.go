// Package moving_test looks at how Fairlead takes over what another system has built, and gives it back: the objects are
// written down as that system leaves them.
package moving_test

import (
	"os"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, cluster.Options{KeepNamespaces: true}))
}
