package workload_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

func TestBasicMigrationFlow(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newMesh(t)
	shop, bank := m.namespace(t, v1.LabelRevision, m.from), m.namespace(t, v1.LabelRevision, m.from)
	free := m.namespace(t)
	cart, till := makeDeployment(shop, "cart"), makeDeployment(shop, "till")
	vault := makeDeployment(bank, "vault")
	own := makeDeployment(free, "own").podLabel(v1.LabelRevision, m.from)
	byNamespace := []builder{cart, till, vault}
	all := append(byNamespace, own)
	m.deploy(t, m.from, all...)
	seen, statuses := m.watch(t), m.statuses(t)

	t.Run("Enable migration with strategy Batched", func(t *testing.T) {
		m.set(t, version(newVersion))
		m.serves(t)
		if status := m.istio.Status.WorkloadMigration; status != nil {
			t.Errorf("nobody has asked for a migration, and the status tells of one: %+v", status)
		}
		m.untouched(t, all...)
		m.set(t, inBatches(2, 0))
		m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
	})
	t.Run("Verify namespaces with old revision labels are updated", func(t *testing.T) {
		for _, namespace := range []string{shop, bank} {
			if diff := cmp.Diff(map[string]string{v1.LabelRevision: m.to}, m.labels(t, namespace)); diff != "" {
				t.Errorf("namespace %s: (-want +got)\n%s", namespace, diff)
			}
		}
		if got := m.labels(t, free); len(got) > 0 {
			t.Errorf("a namespace that chose nothing has got %v", got)
		}
	})
	t.Run("Verify deployments are restarted with correct annotations", func(t *testing.T) {
		for _, b := range all {
			m.runs(t, b, m.to)
			if mark := markOf(t, b.d); mark.Istio != m.istio.Name || mark.Target != m.to || mark.From != m.from || mark.Failed != nil {
				t.Errorf("%s is marked with %+v", b.d.Name, mark)
			}
		}
		m.restartedOnce(t, all...)
		seen.proves(t, 2)
		for _, b := range byNamespace {
			at, err := time.Parse(time.RFC3339, b.d.Spec.Template.Annotations[v1.AnnotationRestartedAt])
			if mark := markOf(t, b.d); err != nil || !at.Equal(mark.Started.Truncate(time.Second)) {
				t.Errorf("%s was restarted at %v, %v, and is marked with %+v", b.d.Name, at, err, mark)
			}
			if label, found := b.d.Spec.Template.Labels[v1.LabelRevision]; found {
				t.Errorf("%s has got a label of its own: %s", b.d.Name, label)
			}
		}
		if got := own.d.Spec.Template.Labels[v1.LabelRevision]; got != m.to {
			t.Errorf("the workload with a label of its own has %s", got)
		}
		if at, found := own.d.Spec.Template.Annotations[v1.AnnotationRestartedAt]; found {
			t.Errorf("the change of its label restarts it, and still it was restarted at %s", at)
		}
		for _, b := range all {
			// The move and the mark are one write.
			if b.d.Generation != 2 || writers(b.d)[v1.FieldOwnerMigration] != metav1.ManagedFieldsOperationUpdate {
				t.Errorf("%s is at generation %d, written by %v", b.d.Name, b.d.Generation, writers(b.d))
			}
		}
	})
	t.Run("Verify status reflects migration state", func(t *testing.T) {
		status := m.istio.Status.WorkloadMigration
		want := &v1.WorkloadMigrationStatus{
			State: v1.WorkloadMigrationStateCompleted, TargetRevision: m.to, TotalWorkloads: 4, MigratedWorkloads: 4,
			StartTime: status.StartTime, CompletionTime: status.CompletionTime,
			Batched: &v1.BatchedMigrationStatus{CurrentBatch: 2, TotalBatches: 2},
		}
		if diff := cmp.Diff(want, status); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if took := status.CompletionTime.Sub(status.StartTime.Time); took < 0 {
			t.Errorf("it took %s", took)
		}
		if diff := cmp.Diff([]v1.WorkloadMigrationState{"InProgress", "Completed"}, statuses.states(t)); diff != "" {
			t.Errorf("states: (-want +got)\n%s", diff)
		}
		if got := condition(m.istio, v1.ConditionWorkloadsMigrated); got.Status != metav1.ConditionTrue || got.Reason != string(v1.ReasonMigrated) {
			t.Errorf("it says %+v", got)
		}
		m.reported(t, m.istio, "MigrationStarted", "moving workloads to "+m.to)
		m.reported(t, m.istio, "MigrationCompleted", "4 of 4 workloads run on "+m.to)
	})
	t.Run("Verify events of batches, namespaces and workloads", func(t *testing.T) {
		for batch := 1; batch <= 2; batch++ {
			m.reported(t, m.istio, "BatchStarted", fmt.Sprintf("batch %d of 2 has started: moving workloads to %s", batch, m.to))
			m.reported(t, m.istio, "BatchEnded", fmt.Sprintf("batch %d of 2 has ended: 2 of 2 workloads run on %s", batch, m.to))
		}
		for _, name := range []string{shop, bank} {
			namespace := &corev1.Namespace{}
			if err := m.Get(t.Context(), client.ObjectKey{Name: name}, namespace); err != nil {
				t.Fatal(err)
			}
			m.reported(t, namespace, "Relabelled", fmt.Sprintf("label istio.io/rev set to move from %s to %s: selected by label istio.io/rev", m.from, m.to))
		}
		for _, b := range byNamespace {
			m.reported(t, b.d, "Migrating", fmt.Sprintf("it was restarted to move from %s to %s: its pods still run the old revision", m.from, m.to))
		}
		m.reported(t, own.d, "Migrating", fmt.Sprintf("its pod label was changed to move from %s to %s: selected by the pod label", m.from, m.to))
	})
}

// Each batch is held until its status has been seen. The batches are told from what the Deployments themselves were like,
// and only their members from what is written on them.
func TestBatchingBehavior(t *testing.T) {
	t.Parallel()
	const size, delay = 3, time.Second
	m := theWorld(t).newMesh(t, inBatches(size, delay))
	namespace := m.namespace(t, v1.LabelRevision, m.from)
	var all []builder
	for i := range 10 {
		all = append(all, makeDeployment(namespace, fmt.Sprintf("w%d", i)).heldOn(m.to))
	}
	m.deploy(t, m.from, all...)
	seen := m.watch(t)
	batches := map[int][]builder{}

	t.Run("Configure batchSize=3 with 10 deployments", func(t *testing.T) { m.set(t, version(newVersion)) })
	t.Run("Verify status shows current/total batch progress", func(t *testing.T) {
		for i, batch := range [][]builder{all[:3], all[3:6], all[6:9], all[9:]} {
			for _, b := range batch {
				m.moves(t, b, m.to)
			}
			status := m.inBatch(t, int32(i+1))
			if status.Batched.TotalBatches != 4 || status.TotalWorkloads != 10 {
				t.Errorf("it says %+v of %d workloads, want 4 batches of 10", *status.Batched, status.TotalWorkloads)
			}
			m.release(t, batch...)
		}
		m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
		for _, b := range all {
			m.runs(t, b, m.to)
			batches[markOf(t, b.d).Batch] = append(batches[markOf(t, b.d).Batch], b)
		}
	})
	t.Run("Verify deployments processed in groups of 3", func(t *testing.T) {
		m.restartedOnce(t, all...)
		seen.proves(t, size)
		if r := seen.replay(t); r.most < size {
			t.Errorf("no more than %d were restarted at once", r.most)
		}
		want := map[int][]string{1: {"w0", "w1", "w2"}, 2: {"w3", "w4", "w5"}, 3: {"w6", "w7", "w8"}, 4: {"w9"}}
		got := map[int][]string{}
		for number, batch := range batches {
			for _, b := range batch {
				got[number] = append(got[number], b.d.Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("batches: (-want +got)\n%s", diff)
		}
	})
	t.Run("Verify delay between batches is respected", func(t *testing.T) {
		for number := 2; number <= 4; number++ {
			var settled time.Time
			for _, b := range batches[number-1] {
				if at := availableSince(b.d); at.After(settled) {
					settled = at
				}
			}
			for _, b := range batches[number] {
				if waited := markOf(t, b.d).Started.Sub(settled); waited < delay {
					t.Errorf("%s of batch %d was restarted %s after batch %d had settled, want %s", b.d.Name, number, waited, number-1, delay)
				}
			}
		}
	})
}

// availableSince is when the Deployment's last pod became available, to the second.
func availableSince(d *appsv1.Deployment) time.Time {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "NewReplicaSetAvailable" {
			return c.LastUpdateTime.Time
		}
	}
	return time.Time{}
}

// mark is what is remembered on a workload, as somebody reads it who does not know the code that writes it.
type mark struct {
	Istio, Target, From, Action string
	Batch                       int
	Started                     time.Time
	Failed                      *time.Time
	Reason                      struct{ Code, Message string }
}

func markOf(t testing.TB, d *appsv1.Deployment) mark {
	t.Helper()
	var m mark
	if text, found := d.Annotations[v1.AnnotationMigration]; found {
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("Deployment %s/%s is marked with %q: %v", d.Namespace, d.Name, text, err)
		}
	}
	return m
}

// writers are who has written to a Deployment and in which way.
func writers(d *appsv1.Deployment) map[string]metav1.ManagedFieldsOperationType {
	found := map[string]metav1.ManagedFieldsOperationType{}
	for _, entry := range d.ManagedFields {
		found[entry.Manager] = entry.Operation
	}
	return found
}
