package workload_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// What happens to workloads in the middle of a migration is in TestChangesDuringMigration, and a restart of the controller in
// TestStoryOperatorKilled.
func TestEdgeCases(t *testing.T) {
	t.Parallel()
	t.Run("Nothing to move", func(t *testing.T) {
		t.Parallel()
		m := theWorld(t).newMesh(t, inBatches(1, time.Hour))
		t.Run("No workloads to migrate, status shows Completed immediately", func(t *testing.T) {
			if status := m.ofFirstVersion(t); status.State != v1.WorkloadMigrationStateIdle || status.StartTime != nil {
				t.Errorf("there was nothing to move from, and it says %+v", status)
			}
			m.set(t, version(newVersion))
			status := m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
			if status.TotalWorkloads != 0 || status.CompletionTime == nil || !status.CompletionTime.Equal(status.StartTime) {
				t.Errorf("it says %+v", status)
			}
		})
		t.Run("All namespaces already on target revision, no-op", func(t *testing.T) {
			m.set(t, func(istio *v1.Istio) { istio.Spec.UpdateStrategy.WorkloadMigration = nil })
			harness.WaitFor(t, m.world, m.istio, func(istio *v1.Istio) error {
				if istio.Status.WorkloadMigration != nil || condition(istio, v1.ConditionReconciled).Status != metav1.ConditionTrue {
					return fmt.Errorf("it is switched off, and says %+v", istio.Status.WorkloadMigration)
				}
				return nil
			})
			b := makeDeployment(m.namespace(t, v1.LabelRevision, m.to), "cart")
			m.deploy(t, m.to, b)
			m.set(t, inBatches(1, time.Hour))
			if status := m.ends(t, m.to, v1.WorkloadMigrationStateCompleted); status.TotalWorkloads != 0 {
				t.Errorf("it says %+v", status)
			}
			m.untouched(t, b)
			var namespace corev1.Namespace
			if err := m.Get(t.Context(), client.ObjectKey{Name: b.d.Namespace}, &namespace); err != nil {
				t.Fatal(err)
			}
			for _, entry := range namespace.ManagedFields {
				if entry.Manager == v1.FieldOwnerMigration {
					t.Error("its namespace was written to")
				}
			}
		})
	})
	t.Run("Istio resource deleted during migration, migration stops", func(t *testing.T) {
		t.Parallel()
		c := theWorld(t).setOut(t)
		if err := c.Delete(t.Context(), c.istio, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			t.Fatal(err)
		}
		harness.WaitForDeletion(t, c.world, c.istio)
		c.pruned(t, c.from)
		c.pruned(t, c.to)
		if diff := cmp.Diff([]string{c.all[0].d.Name}, c.started(t)); diff != "" {
			t.Errorf("restarts: (-want +got)\n%s", diff)
		}
		for _, b := range c.all {
			wait.Until(t, func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(b.d), b.d); err != nil {
					return err
				}
				if !complete(b.d) {
					return fmt.Errorf("Deployment %s is %+v", b.d.Name, b.d.Status)
				}
				return nil
			})
		}
	})
}

// ofFirstVersion waits for what is said of workloads before there was anything to move.
func (m *mesh) ofFirstVersion(t testing.TB) *v1.WorkloadMigrationStatus {
	t.Helper()
	return m.moving(t, func(status *v1.WorkloadMigrationStatus) error {
		if status.TargetRevision != m.from {
			return fmt.Errorf("it does not speak of %s", m.from)
		}
		return nil
	})
}

// Which workloads move, in which order, and which do not.
func TestWorkloadSelection(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newMesh(t, inBatches(3, 0))
	foreign := theWorld(t).newMesh(t)
	shop := m.namespace(t, v1.LabelRevision, m.from)
	free := m.namespace(t)
	move := []builder{
		makeDeployment(shop, "a-last").annotate(v1.AnnotationMigrationBatch, "9"),
		makeDeployment(shop, "b-first").annotate(v1.AnnotationMigrationBatch, "-1"),
		makeDeployment(shop, "c-own").podLabel(v1.LabelRevision, m.from),
		makeDeployment(shop, "d-plain").annotate(v1.AnnotationSkipMigration, "false"),
	}
	asleep := makeDeployment(free, "asleep").podLabel(v1.LabelRevision, m.from).replicas(0)
	stay := []builder{
		makeDeployment(shop, "skipped").annotate(v1.AnnotationSkipMigration, "true"),
		makeDeployment(shop, "outside").podLabel(v1.LabelSidecarInject, "false"),
		makeDeployment(m.namespace(t), "plain"),
		makeDeployment(m.namespace(t, v1.LabelRevision, foreign.from), "foreign"),
		makeDeployment(shop, "halted"),
	}
	skipped, outside, plain, others, halted := stay[0], stay[1], stay[2], stay[3], stay[4]
	m.deploy(t, m.from, append([]builder{asleep, skipped, halted}, move...)...)
	m.deploy(t, "", outside, plain)
	m.deploy(t, foreign.from, others)
	harness.Change(t, m.world, halted.d, func(d *appsv1.Deployment) { d.Spec.Paused = true })
	set := harness.Create(t, m.world, statefulSet(shop, "set"))
	harness.WaitFor(t, m.world, set, func(s *appsv1.StatefulSet) error {
		if s.Status.ReadyReplicas != 1 {
			return fmt.Errorf("it is %+v", s.Status)
		}
		return nil
	})
	seen := m.watch(t)
	m.set(t, version(newVersion))

	status := m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
	if status.TotalWorkloads != 5 || status.MigratedWorkloads != 5 {
		t.Errorf("it says %+v", status)
	}
	for _, b := range append(move, asleep) {
		m.runs(t, b, m.to)
	}
	if got := asleep.d.Spec.Template.Labels[v1.LabelRevision]; got != m.to {
		t.Errorf("the one that sleeps would wake up on %s", got)
	}
	m.restartedOnce(t, move...)
	m.untouched(t, stay...)
	seen.proves(t, 3)
	// A batch has one priority, and what has no pods needs none.
	starts := slices.DeleteFunc(seen.replay(t).starts, func(name string) bool { return name == "asleep" })
	if len(starts) != 4 || starts[0] != "b-first" || starts[3] != "a-last" {
		t.Errorf("they were restarted in the order %v", starts)
	}
	got := condition(m.istio, v1.ConditionWorkloadsMigrated)
	for _, want := range []string{
		"Deployment " + shop + "/halted (DeploymentPaused)",
		"Deployment " + shop + "/skipped (SkippedByAnnotation)",
		"StatefulSet " + shop + "/set (KindNotMoved)",
	} {
		if !strings.Contains(got.Message, want) {
			t.Errorf("it does not tell of %s: %s", want, got.Message)
		}
	}

	t.Log("those that stay keep the old revision, and move when they are restarted")
	harness.WaitFor(t, m.world, &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: m.from}}, func(r *v1.IstioRevision) error {
		if inUse := harness.DescribeConditions(r.Status.Conditions); !strings.Contains(inUse, "InUse=True") {
			return fmt.Errorf("it is not in use:%s", inUse)
		}
		return nil
	})
	harness.Change(t, m.world, skipped.d, func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{v1.AnnotationRestartedAt: "now"}
	})
	m.runs(t, skipped, m.to)
}

func statefulSet(namespace, name string) *appsv1.StatefulSet {
	d := makeDeployment(namespace, name).d
	return &appsv1.StatefulSet{
		ObjectMeta: d.ObjectMeta,
		Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](1), Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
}
