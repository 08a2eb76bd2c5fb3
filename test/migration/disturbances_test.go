package migration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/cluster"
)

// What would disturb other tests has a cluster of its own.
func TestDisturbances(t *testing.T) {
	t.Parallel()
	w := ownWorld(t)
	t.Run("Crash at every write", func(t *testing.T) { disturbedWrites(t, w) })
	t.Run("Controller restart during migration, resume or restart migration", func(t *testing.T) { restartsOfTheOperator(t, w) })
	t.Run("API server restart during migration", func(t *testing.T) { restartOfTheServer(t, w) })
}

// restartsOfTheOperator kills it while workloads are on their way, and leaves it dead for as long as one of them has to
// become ready.
func restartsOfTheOperator(t *testing.T, w *world) {
	const timeout = 4 * time.Second
	w.start(t)
	m := w.newMesh(t, inBatches(2, time.Second, time.Minute))
	namespace := m.namespace(t, v1.LabelRevision, m.from)
	sick := makeDeployment(namespace, "a-sick").sickOn(m.to).annotate(v1.AnnotationReadinessTimeout, timeout.String())
	all := []builder{sick}
	for i := range 5 {
		all = append(all, makeDeployment(namespace, fmt.Sprintf("w%d", i)))
	}
	m.deploy(t, m.from, all...)
	seen := m.watch(t)
	// killOnceMoved kills the operator as soon as it has begun with a workload.
	killOnceMoved := func(b builder) {
		t.Helper()
		until(t, w, b.d, func(d *appsv1.Deployment) error {
			if markOf(t, d).Target != m.to {
				return fmt.Errorf("it is not being moved")
			}
			return nil
		})
		w.operator.Kill()
	}
	m.set(t, version(newVersion))
	killOnceMoved(sick)
	began := markOf(t, sick.d).Started
	// Time is the subject here.
	time.Sleep(time.Until(began.Add(timeout)))
	w.start(t)
	again := time.Now()
	killOnceMoved(all[3])
	w.start(t)

	status := m.ends(t, m.to, v1.WorkloadMigrationStateFailed)
	if status.TotalWorkloads != 6 || status.MigratedWorkloads != 5 || status.FailedWorkloads != 1 {
		t.Errorf("it says %+v", status)
	}
	for _, b := range all[1:] {
		m.runs(t, b, m.to)
	}
	m.restartedOnce(t, all...)
	seen.proves(t, 2)
	mark := markOf(t, sick.d)
	switch {
	case mark.Failed == nil:
		t.Errorf("the sick one is marked with %+v", mark)
	case !mark.Started.Equal(began):
		t.Errorf("it was started at %s, and again at %s", began, mark.Started)
	case mark.Failed.Sub(again) >= timeout:
		t.Errorf("it was given up %s after the restart: its time began anew", mark.Failed.Sub(again))
	}

	t.Log("with nothing left to do, a restart changes nothing")
	m.untouched(t, all...)
	w.operator.Kill()
	w.start(t)
	m.set(t, grace(time.Minute))
	m.ends(t, m.to, v1.WorkloadMigrationStateFailed)
	m.untouched(t, all...)
	w.operator.Kill()
}

// restartOfTheServer takes the API server away from everybody.
func restartOfTheServer(t *testing.T, w *world) {
	w.start(t)
	m := w.newMesh(t, inBatches(1, 3*time.Second, time.Minute))
	namespace := m.namespace(t, v1.LabelRevision, m.from)
	var all []builder
	for i := range 4 {
		all = append(all, makeDeployment(namespace, fmt.Sprintf("w%d", i)))
	}
	m.deploy(t, m.from, all...)
	m.set(t, version(newVersion))
	m.underway(t, 1)
	w.killServer(t)
	eventually(t, func(ctx context.Context) error {
		_, err := cluster.Localkube("up", "--dir", w.Dir)
		return errors.Join(err, w.Get(ctx, client.ObjectKeyFromObject(m.istio), m.istio))
	})
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
