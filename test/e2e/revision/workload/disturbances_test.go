package workload_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness/cluster"
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
	w.killServer(t)
	eventually(t, func(ctx context.Context) error {
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
	w.operator.Kill()
}

func (w *world) killServer(t testing.TB) {
	t.Helper()
	output, err := cluster.Localkube("status", "--dir", w.Dir, "--output", "json")
	if err != nil {
		t.Fatal(err)
	}
	var status struct {
		Components []struct {
			Name string
			PID  int
		}
	}
	if err := json.Unmarshal([]byte(output), &status); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, c := range status.Components {
		if c.Name == "kube-apiserver" {
			if err := syscall.Kill(c.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("there is no API server: %s", output)
}
