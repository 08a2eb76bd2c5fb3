// Package switching_test switches the consumers of a mesh over on a real API server, with an operator that dies or is refused
// at any write. The proxies are played.
package switching_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/test/cluster"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(cluster.Run(m))
}
