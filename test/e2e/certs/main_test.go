// Package certs_test looks at the certificates of webhooks: who keeps them, when an operator is ready to be called with
// them, and that no call fails while they are rotated.
package certs_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(cluster.RunWith(m, cluster.Options{Profile: "hub", KeepNamespaces: true}))
}
