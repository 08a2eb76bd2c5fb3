// Package certs_test rotates certificates while an API server calls the webhook that presents them.
package certs_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/test/cluster"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(cluster.RunWith(m, cluster.Options{Profile: "hub"}))
}
