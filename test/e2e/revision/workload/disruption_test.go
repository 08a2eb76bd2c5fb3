package workload_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// What would disturb other tests has a cluster of its own. A restart of the controller is told in TestStoryOperatorKilled.
func TestDisturbances(t *testing.T) {
	t.Parallel()
	w := ownWorld(t)
	t.Run("Crash at every write", func(t *testing.T) { disturbedWrites(t, w) })
	t.Run("API server restart during migration", func(t *testing.T) { restartOfTheServer(t, w) })
}

// restartOfTheServer takes the API server away from everybody.
func restartOfTheServer(t *testing.T, w *world) {
	w.start(t)
	m := w.newMesh(t, inBatches(1, 0))
	namespace := m.namespace(t, v1.LabelRevision, m.from)
	var all []builder
	for i := range 4 {
		all = append(all, makeDeployment(namespace, fmt.Sprintf("w%d", i)).heldOn(m.to))
	}
	m.deploy(t, m.from, all...)
	m.set(t, version(newVersion))
	m.moves(t, all[0], m.to)
	w.KillAPIServer(t)
	wait.Until(t, func(ctx context.Context) error {
		_, err := cluster.Localkube("up", "--dir", w.Dir)
		return errors.Join(err, w.Get(ctx, client.ObjectKeyFromObject(m.istio), m.istio))
	})
	m.release(t, all...)
	status := m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
	if status.TotalWorkloads != 4 || status.MigratedWorkloads != 4 {
		t.Errorf("it says %+v", status)
	}
	for _, b := range all {
		m.runs(t, b, m.to)
	}
	m.restartedOnce(t, all...)
	w.Operator.Kill()
}
