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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/injector"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// Readiness and what is reported of it: five workloads one by one, of which the third and the fourth never become ready.
func TestReadinessCheckingAndStatusReporting(t *testing.T) {
	t.Parallel()
	const ownTimeout = 3 * time.Second
	m := theWorld(t).newMesh(t, inBatches(1, 0))
	namespace := m.namespace(t, v1.LabelRevision, m.from)
	quick := makeDeployment(namespace, "a-quick")
	// The old pod stays until the new one is ready, so that there is one ready pod of one all the time.
	slow := makeDeployment(namespace, "b-slow").heldOn(m.to)
	never := makeDeployment(namespace, "c-never").sickOn(m.to).annotate(v1.AnnotationReadinessTimeout, ownTimeout.String())
	stuck := makeDeployment(namespace, "d-stuck").sickOn(m.to).with(func(d *appsv1.Deployment) {
		d.Spec.ProgressDeadlineSeconds = ptr.To[int32](2)
	})
	last := makeDeployment(namespace, "e-last")
	all := []builder{quick, slow, never, stuck, last}
	m.deploy(t, m.from, all...)
	seen, statuses := m.watch(t), m.statuses(t)
	m.set(t, version(newVersion))
	second := m.inBatch(t, 2).DeepCopy()
	m.release(t, slow)
	ended := m.ends(t, m.to, v1.WorkloadMigrationStateFailed)
	for _, b := range all {
		if err := m.Get(t.Context(), client.ObjectKeyFromObject(b.d), b.d); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("Readiness Checking", func(t *testing.T) {
		t.Run("Deployment becomes ready within timeout, migration proceeds", func(t *testing.T) {
			m.runs(t, quick, m.to)
			m.runs(t, slow, m.to)
			// Somebody who looks at ready replicas alone would have gone on while the slow one had its old pod only.
			seen.proves(t, 1)
			if diff := cmp.Diff([]string{"a-quick", "b-slow", "c-never", "d-stuck", "e-last"}, seen.replay(t).starts); diff != "" {
				t.Errorf("restarts: (-want +got)\n%s", diff)
			}
		})
		t.Run("Deployment doesn't become ready, timeout occurs, marked as failed", func(t *testing.T) {
			mark := markOf(t, never.d)
			if mark.Failed == nil || mark.Reason.Code != string(v1.ReasonTimeout) {
				t.Fatalf("it is marked with %+v", mark)
			}
			if took := mark.Failed.Sub(mark.Started); took < ownTimeout {
				t.Errorf("it was given up after %s, want %s", took, ownTimeout)
			}
			if mark := markOf(t, stuck.d); mark.Failed == nil || mark.Reason.Code != string(v1.ReasonProgressDeadline) {
				t.Errorf("the one that gave up itself is marked with %+v", mark)
			}
			for _, b := range []builder{never, stuck} {
				if found, err := m.injectedBy(t.Context(), b.d); err != nil || found[m.from] != 1 {
					t.Errorf("%s runs on %v, %v, want its old pods left alone", b.d.Name, found, err)
				}
			}
		})
		t.Run("Failed deployment doesn't block subsequent batches", func(t *testing.T) {
			m.runs(t, last, m.to)
			if last, failed := markOf(t, last.d).Started, markOf(t, stuck.d).Failed; last.Before(*failed) {
				t.Errorf("the last one was started at %s, before the one before it was given up at %s", last, failed)
			}
		})
		t.Run("Status captures failure details correctly", func(t *testing.T) {
			var reasons []string
			for _, failure := range ended.Failures {
				reasons = append(reasons, failure.Name+": "+failure.Reason)
			}
			want := []string{
				"c-never: Readiness timeout exceeded after " + ownTimeout.String(),
				"d-stuck: Deployment failed to reach ready state: 0/1 replicas ready",
			}
			if diff := cmp.Diff(want, reasons); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			m.reported(t, never.d, "MigrationFailed", "moving to "+m.to+" failed: Readiness timeout exceeded after 3s")
			m.reported(t, stuck.d, "MigrationFailed", "moving to "+m.to+" failed: Deployment failed to reach ready state: 0/1 replicas ready")
			m.reported(t, m.istio, "MigrationFailed", "3 of 5 workloads run on "+m.to+", 2 failed")
		})
	})

	t.Run("Status Reporting", func(t *testing.T) {
		var reports []v1.WorkloadMigrationStatus
		for _, status := range statuses.ofWorkloads(t) {
			if status.State != v1.WorkloadMigrationStateIdle {
				reports = append(reports, status)
			}
		}
		t.Run("Status created when migration starts", func(t *testing.T) {
			first := reports[0]
			if first.State != v1.WorkloadMigrationStateInProgress || first.TargetRevision != m.to || first.StartTime == nil || first.CompletionTime != nil {
				t.Errorf("the first of them is %+v", first)
			}
			if earliest := markOf(t, quick.d).Started; first.StartTime.After(earliest) {
				t.Errorf("it started at %s, and a workload at %s already", first.StartTime, earliest)
			}
		})
		t.Run("Status updated after each batch", func(t *testing.T) {
			if second.MigratedWorkloads != 1 || second.FailedWorkloads != 0 || second.TotalWorkloads != 5 {
				t.Errorf("in the second batch it was said %+v", second)
			}
			var reported []int32
			for _, r := range reports {
				b, ended := r.Batched, r.MigratedWorkloads+r.FailedWorkloads
				if b == nil || b.CurrentBatch == 0 {
					continue
				}
				if b.TotalBatches != 5 || ended < b.CurrentBatch-1 || ended > b.CurrentBatch {
					t.Errorf("in batch %d of %d it was said that %d have ended", b.CurrentBatch, b.TotalBatches, ended)
				}
				reported = append(reported, b.CurrentBatch)
			}
			if !slices.IsSorted(reported) {
				t.Errorf("the batches were told of in the order %v", reported)
			}
		})
		t.Run("Status shows Failed when any workload fails", func(t *testing.T) {
			want := &v1.WorkloadMigrationStatus{
				State: v1.WorkloadMigrationStateFailed, TargetRevision: m.to,
				TotalWorkloads: 5, MigratedWorkloads: 3, FailedWorkloads: 2, Failures: ended.Failures,
				StartTime: ended.StartTime, CompletionTime: ended.CompletionTime,
				Batched: &v1.BatchedMigrationStatus{CurrentBatch: 5, TotalBatches: 5},
			}
			if diff := cmp.Diff(want, ended); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if ended.StartTime == nil || ended.CompletionTime.Before(ended.StartTime) {
				t.Errorf("it started at %s and ended at %s", ended.StartTime, ended.CompletionTime)
			}
			got := condition(m.istio, v1.ConditionWorkloadsMigrated)
			if got.Status != metav1.ConditionFalse || got.Reason != string(v1.ReasonMigrationFailed) || !strings.Contains(got.Message, "fairlead retry istio "+m.istio.Name) {
				t.Errorf("it says %+v", got)
			}
		})
		t.Run("Failure details captured with namespace, name, reason, timestamp", func(t *testing.T) {
			for i, b := range []builder{never, stuck} {
				mark := markOf(t, b.d)
				want := v1.WorkloadMigrationFailure{
					Namespace: namespace, Name: b.d.Name, Kind: "Deployment", Reason: mark.Reason.Message, Code: v1.Reason(mark.Reason.Code),
					Timestamp: metav1.NewTime(mark.Failed.Truncate(time.Second)),
				}
				if diff := cmp.Diff(want, ended.Failures[i]); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
		t.Run("Status shows Completed when all succeed", func(t *testing.T) {
			m.heal(t, namespace, never, stuck)
			m.retry(t)
			status := m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
			if status.FailedWorkloads != 0 || len(status.Failures) != 0 || status.MigratedWorkloads != status.TotalWorkloads {
				t.Errorf("it says %+v", status)
			}
			m.runs(t, never, m.to)
			m.runs(t, stuck, m.to)
			m.restartedOnce(t, quick, slow, last)
		})
	})
}

// heal lets pods of a namespace become ready from now on, and gives the sick ones there all the time they may need.
func (m *mesh) heal(t testing.TB, namespace string, sick ...builder) {
	t.Helper()
	m.label(t, namespace, injector.LabelHealed, "true")
	for _, b := range sick {
		harness.Change(t, m.world, b.d, func(d *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1.AnnotationReadinessTimeout, never.String())
			d.Spec.ProgressDeadlineSeconds = ptr.To(int32(never / time.Second))
		})
		// The API server takes a moment to know of the label, and a pod that is created before that stays sick.
		wait.Until(t, func(ctx context.Context) error {
			pod, err := m.dryRunPod(ctx, b.d)
			if err == nil && pod.Annotations[cluster.ReadyAfter] == cluster.Never {
				err = fmt.Errorf("a new pod of Deployment %s/%s would be sick", namespace, b.d.Name)
			}
			return err
		})
	}
}

// retry asks for those that have failed to be tried again.
func (m *mesh) retry(t testing.TB) {
	t.Helper()
	m.set(t, func(istio *v1.Istio) {
		istio.Annotations = map[string]string{fairlead.AnnotationRetry: time.Now().UTC().Format(time.RFC3339Nano)}
	})
}
