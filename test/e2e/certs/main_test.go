// Package certs_test looks at the certificates of webhooks: who keeps them, when an operator is ready to be called with
// them, and that no call fails while they are rotated.
package certs_test

import (
	"os"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, cluster.Options{Profile: "hub", KeepNamespaces: true}))
}
