package workload_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// moveKinds has workloads of these kinds moved.
func moveKinds(kinds ...v1.WorkloadKind) func(*v1.Istio) {
	return func(istio *v1.Istio) { istio.Spec.UpdateStrategy.WorkloadMigration.Batched.WorkloadKinds = kinds }
}

// A StatefulSet and a DaemonSet move in batches with a Deployment. The StatefulSet fails, and all of them go back.
func TestStatefulSetsAndDaemonSets(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newMesh(t, inBatches(2, 0),
		moveKinds(v1.WorkloadKindDeployment, v1.WorkloadKindStatefulSet, v1.WorkloadKindDaemonSet))
	shop := m.namespace(t, v1.LabelRevision, m.from)
	cart := makeDeployment(shop, "cart")
	m.deploy(t, m.from, cart)
	agent := harness.Create(t, m.world, daemonSet(makeDeployment(shop, "agent")))
	manual := harness.Create(t, m.world, daemonSet(makeDeployment(shop, "manual")))
	harness.Change(t, m.world, manual, func(d *appsv1.DaemonSet) { d.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType })
	sick := makeDeployment(shop, "db").sickOn(m.to).annotate(v1.AnnotationReadinessTimeout, time.Hour.String())
	db := statefulSet(shop, "db")
	db.ObjectMeta, db.Spec.Template, db.Spec.Replicas = sick.d.ObjectMeta, sick.d.Spec.Template, ptr.To[int32](2)
	harness.Create(t, m.world, db)
	m.podsRun(t, "agent", shop, m.from, 1)
	m.podsRun(t, "manual", shop, m.from, 1)
	m.podsRun(t, "db", shop, m.from, 2)

	m.set(t, version(newVersion))
	// Its time is over once it waits for the pod that does not become ready, which is what the failure tells.
	m.hasPodsOn(t, sick, m.to)
	harness.WaitFor(t, m.world, db, func(s *appsv1.StatefulSet) error {
		if s.Status.ReadyReplicas != 1 {
			return fmt.Errorf("it does not wait for one of two pods: %+v", s.Status)
		}
		return nil
	})
	m.begunEarlier(t, db, time.Hour)
	status := m.ends(t, m.to, v1.WorkloadMigrationStateFailed)
	if status.TotalWorkloads != 3 || status.MigratedWorkloads != 2 || len(status.Failures) != 1 || status.Failures[0].Kind != "StatefulSet" ||
		status.Failures[0].Name != "db" || status.Failures[0].Code != v1.ReasonTimeout {
		t.Errorf("it says %+v", status)
	}
	m.runs(t, cart, m.to)
	m.podsRun(t, "agent", shop, m.to, 1)
	if message := condition(m.istio, v1.ConditionWorkloadsMigrated).Message; !strings.Contains(message, "DaemonSet "+shop+"/manual (OnDelete)") {
		t.Errorf("it does not tell of the DaemonSet that its owner has to restart: %s", message)
	}
	batches := map[string]int{}
	for _, object := range []client.Object{cart.d, agent, db} {
		if err := m.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		batches[object.GetName()] = markIn(t, object).Batch
	}
	if diff := cmp.Diff(map[string]int{"agent": 1, "cart": 1, "db": 2}, batches); diff != "" {
		t.Errorf("batches: (-want +got)\n%s", diff)
	}
	m.reported(t, db, "MigrationFailed", "moving to "+m.to+" failed: Readiness timeout exceeded after 1h0m0s"+
		"; a StatefulSet replaces no pod while one is not ready: remove the cause, and delete that pod")

	t.Log("all go back, once the pod is deleted for which the StatefulSet waits")
	harness.Change(t, m.world, db, func(s *appsv1.StatefulSet) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1.AnnotationReadinessTimeout, never.String())
	})
	m.set(t, version(oldVersion))
	harness.WaitFor(t, m.world, db, func(s *appsv1.StatefulSet) error {
		if markIn(t, s).Target != m.from {
			return errors.New("it is not being moved back")
		}
		return nil
	})
	if err := m.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "db-1"}}); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	m.ends(t, m.from, v1.WorkloadMigrationStateCompleted)
	m.runs(t, cart, m.from)
	m.podsRun(t, "agent", shop, m.from, 1)
	m.podsRun(t, "db", shop, m.from, 2)
	m.podsRun(t, "manual", shop, m.from, 1)
}

// Without workloadKinds, nothing but Deployments moves, and the others are listed.
func TestOtherKindsByDefault(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newMesh(t, inBatches(2, 0))
	shop := m.namespace(t, v1.LabelRevision, m.from)
	cart := makeDeployment(shop, "cart")
	m.deploy(t, m.from, cart)
	agent := harness.Create(t, m.world, daemonSet(makeDeployment(shop, "agent")))
	db := harness.Create(t, m.world, statefulSet(shop, "db"))
	m.podsRun(t, "agent", shop, m.from, 1)
	m.podsRun(t, "db", shop, m.from, 1)
	m.set(t, version(newVersion))
	if status := m.ends(t, m.to, v1.WorkloadMigrationStateCompleted); status.TotalWorkloads != 1 {
		t.Errorf("it says %+v", status)
	}
	m.runs(t, cart, m.to)
	message := condition(m.istio, v1.ConditionWorkloadsMigrated).Message
	for _, want := range []string{"DaemonSet " + shop + "/agent (KindNotMoved)", "StatefulSet " + shop + "/db (KindNotMoved)"} {
		if !strings.Contains(message, want) {
			t.Errorf("it does not tell of %s: %s", want, message)
		}
	}
	for _, object := range []client.Object{agent, db} {
		made := object.GetGeneration()
		if err := m.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		if object.GetGeneration() != made || object.GetAnnotations()[v1.AnnotationMigration] != "" {
			t.Errorf("%s was written to: %v", object.GetName(), object.GetAnnotations())
		}
	}
}

func daemonSet(b builder) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: b.d.ObjectMeta,
		Spec:       appsv1.DaemonSetSpec{Selector: b.d.Spec.Selector, Template: b.d.Spec.Template},
	}
}

// podsRun waits until all pods of a workload are ready and were injected by a revision.
func (m *mesh) podsRun(t testing.TB, app, namespace, revision string, count int) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := m.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
			return err
		}
		found := map[string]int{}
		for _, pod := range pods.Items {
			ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
			if !ready || pod.DeletionTimestamp != nil {
				return fmt.Errorf("pod %s/%s is not ready", namespace, pod.Name)
			}
			found[pod.Annotations[v1.AnnotationRevision]]++
		}
		if want := map[string]int{revision: count}; !maps.Equal(found, want) {
			return fmt.Errorf("the pods of %s/%s run %v, and should run %v", namespace, app, found, want)
		}
		return nil
	})
}

// markIn is the mark of a workload of any kind.
func markIn(t testing.TB, workload client.Object) mark {
	t.Helper()
	var m mark
	if text, found := workload.GetAnnotations()[v1.AnnotationMigration]; found {
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("%s/%s is marked with %q: %v", workload.GetNamespace(), workload.GetName(), text, err)
		}
	}
	return m
}
