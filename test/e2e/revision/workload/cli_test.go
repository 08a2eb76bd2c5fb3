package workload_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// planned is what `plan -o json` says about a workload or namespace.
type planned struct {
	Object struct{ Kind, Namespace, Name string }
	Action string
	From   string
	To     string
	Batch  int
	State  string
	Reason struct{ Code, Message string }
}

func (p planned) String() string {
	return strings.TrimPrefix(p.Object.Namespace+"/", "/") + p.Object.Name
}

// plan asks what would happen with another version.
func (m *mesh) plan(t testing.TB, version string) (steps []planned, batches int) {
	t.Helper()
	result := harness.RunCommand(t, m.Cluster, "plan", "istio", m.istio.Name, "--version", version, "--chart-dir", cluster.Charts(t), "-o", "json")
	if result.Code != 3 {
		t.Fatalf("plan ended with %d: %s", result.Code, result.Stderr)
	}
	var report struct {
		Workloads struct {
			Steps    []planned
			Estimate struct{ Batches int }
		}
	}
	if err := json.Unmarshal([]byte(result.Stdout), &report); err != nil {
		t.Fatalf("%v:\n%s", err, result.Stdout)
	}
	return report.Workloads.Steps, report.Workloads.Estimate.Batches
}

// What is planned for a version before it is asked for is what is then done, to the batch.
func TestPlanIsWhatHappens(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newMesh(t, inBatches(2, 0))
	shop, free := m.namespace(t, v1.LabelRevision, m.from), m.namespace(t)
	first := makeDeployment(shop, "z-first").annotate(v1.AnnotationMigrationBatch, "-1")
	cart, till := makeDeployment(shop, "cart"), makeDeployment(shop, "till")
	own := makeDeployment(free, "own").podLabel(v1.LabelRevision, m.from)
	stays := makeDeployment(shop, "stays").annotate(v1.AnnotationSkipMigration, "true")
	moved := []builder{first, cart, till, own}
	m.deploy(t, m.from, append(moved, stays)...)

	steps, batches := m.plan(t, newVersion)
	m.set(t, version(newVersion))
	status := m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)

	if int(status.Batched.TotalBatches) != batches || int(status.TotalWorkloads) != len(moved) {
		t.Errorf("%d workloads in %d batches, planned were %d in %d", status.TotalWorkloads, status.Batched.TotalBatches, len(moved), batches)
	}
	var happened []string
	for _, b := range append(moved, stays) {
		m.runs(t, b, map[bool]string{true: m.from, false: m.to}[b.d == stays.d])
		mark := markOf(t, b.d)
		happened = append(happened, fmt.Sprintf("%s/%s: %s from %s to %s in batch %d", b.d.Namespace, b.d.Name, mark.Action, mark.From, mark.Target, mark.Batch))
	}
	happened = append(happened, fmt.Sprintf("%s: relabel to %s", shop, m.labels(t, shop)[v1.LabelRevision]))
	var said []string
	for _, s := range steps {
		switch {
		case s.Object.Kind == "Namespace":
			said = append(said, fmt.Sprintf("%s: %s to %s", s, s.Action, s.To))
		case s.State == "Skipped":
			said = append(said, fmt.Sprintf("%s:  from  to  in batch 0", s))
		default:
			said = append(said, fmt.Sprintf("%s: %s from %s to %s in batch %d", s, s.Action, s.From, s.To, s.Batch))
		}
	}
	slices.Sort(happened)
	slices.Sort(said)
	if diff := cmp.Diff(said, happened); diff != "" {
		t.Errorf("(-planned +happened)\n%s", diff)
	}
}

func TestWatchAndRetry(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newMesh(t, inBatches(2, 0))
	shop := m.namespace(t, v1.LabelRevision, m.from)
	cart := makeDeployment(shop, "cart").heldOn(m.to)
	sick := makeDeployment(shop, "sick").sickOn(m.to).annotate(v1.AnnotationReadinessTimeout, "2s")
	m.deploy(t, m.from, cart, sick)
	m.set(t, version(newVersion))
	m.moves(t, cart, m.to)

	t.Run("watch tells of the failure, and so does its exit code", func(t *testing.T) {
		watch := harness.StartCommand(t, m.Cluster, "watch", "istio", m.istio.Name, "--wait", "--timeout", wait.Deadline().String())
		wait.Until(t, func(context.Context) error {
			if line := "Deployment " + shop + "/cart: restart in batch 1"; !strings.Contains(watch.Stdout.Since(0), line) {
				return fmt.Errorf("nowhere is %q:\n%s", line, watch.Stdout.Since(0))
			}
			return nil
		})
		m.release(t, cart)
		result := watch.Wait()
		if result.Code != 1 {
			t.Errorf("it ended with %d: %s", result.Code, result.Stderr)
		}
		for _, line := range []string{
			"Deployment " + shop + "/cart: done",
			"Deployment " + shop + "/sick: restart failed: Readiness timeout exceeded after 2s",
			"workloads to " + m.to + ": Failed, 1 of 2 done, 1 failed, batch 1 of 1",
		} {
			if !strings.Contains(result.Stdout, line) {
				t.Errorf("nowhere is %q:\n%s", line, result.Stdout)
			}
		}
	})
	began := m.ends(t, m.to, v1.WorkloadMigrationStateFailed).StartTime
	t.Run("what is in progress when the time is over is that", func(t *testing.T) {
		pause := harness.RunCommand(t, m.Cluster, "pause", "istio", m.istio.Name)
		m.tryAgain(t, "istio.sailoperator.io/"+m.istio.Name+": 1 workload is tried again\n")
		// However little of it there is to be seen in that time.
		result := harness.RunCommand(t, m.Cluster, "watch", "istio", m.istio.Name, "--wait", "--timeout", "100ms")
		if pause.Code != 0 || result.Code != 3 {
			t.Errorf("it ended with %d: %s%s", result.Code, result.Stdout, result.Stderr)
		}
		m.held(t, v1.ReasonPaused)
		status := harness.RunCommand(t, m.Cluster, "status", "istio", m.istio.Name)
		if status.Code != 3 || !strings.Contains(status.Stdout, "Held: paused by annotation") {
			t.Errorf("status ended with %d: %s%s", status.Code, status.Stdout, status.Stderr)
		}
	})
	t.Run("retry goes on with the same migration", func(t *testing.T) {
		m.heal(t, shop, sick)
		if result := harness.RunCommand(t, m.Cluster, "resume", "istio", m.istio.Name); result.Code != 0 {
			t.Fatal(result.Stderr)
		}
		result := harness.RunCommand(t, m.Cluster, "watch", "istio", m.istio.Name, "--wait", "--timeout", wait.Deadline().String())
		if result.Code != 0 {
			t.Errorf("it ended with %d: %s%s", result.Code, result.Stdout, result.Stderr)
		}
		status := m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
		if status.TotalWorkloads != 2 || status.MigratedWorkloads != 2 || !status.StartTime.Equal(began) {
			t.Errorf("it says %+v, and began before at %s", status, began)
		}
		m.tryAgain(t, "istio.sailoperator.io/"+m.istio.Name+" has no workloads that failed\n")
	})
}

func (m *mesh) tryAgain(t testing.TB, want string) {
	t.Helper()
	if result := harness.RunCommand(t, m.Cluster, "retry", "istio", m.istio.Name); result.Code != 0 || result.Stdout != want {
		t.Errorf("retry ended with %d: %s%s", result.Code, result.Stdout, result.Stderr)
	}
}
