package install_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// workloads move one by one, in this order.
var workloads = []string{"cart", "checkout", "search"}

// deployment annotation that counts its pod templates.
const rolloutAnnotation = "deployment.kubernetes.io/revision"

func defaultIstio() *v1.Istio { return &v1.Istio{ObjectMeta: metav1.ObjectMeta{Name: "default"}} }

func (w *world) applies(t testing.TB, file string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	w.run(t, "kubectl apply --server-side -f "+path)
}

// deploysShop brings up a control plane and workloads on it, and an object that the operator converts.
func (w *world) deploysShop(t testing.TB) {
	t.Helper()
	w.applies(t, "istio.yaml")
	w.isHealthy(t)
	w.applies(t, "shop.yaml")
	for _, name := range workloads {
		w.runs(t, name, rev24, 1)
	}
	w.converts(t)
}

func (w *world) isHealthy(t testing.TB) {
	t.Helper()
	harness.WaitFor(t, w, defaultIstio(), func(i *v1.Istio) error {
		if i.Status.ObservedGeneration != i.Generation || i.Status.State != v1.StateHealthy {
			return fmt.Errorf("the state is %s:%s", i.Status.State, harness.DescribeConditions(i.Status.Conditions))
		}
		return nil
	})
}

// converts reads an object in another version than it is stored in: the API server calls the operator.
func (w *world) converts(t testing.TB) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		r := w.try(t, "kubectl -n shop get materializes.v1alpha1.materialize.cloud orders -o jsonpath={.spec.backendSecretName}")
		if r.Code != 0 || r.Stdout != "backend" {
			return fmt.Errorf("read orders: %+v", r)
		}
		return nil
	})
}

// starts moves all workloads to a version of Istio, and waits until one is under way: its new pod is not ready before the test says so.
func (w *world) starts(t testing.TB, version, revision, held string) {
	t.Helper()
	w.run(t, fmt.Sprintf(`kubectl patch istio default --type merge -p '{"spec":{"version":"v%s"}}'`, version))
	wait.Until(t, func(ctx context.Context) error {
		pods, err := w.podsOf(ctx, held)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Annotations[v1.AnnotationRevision] == revision }) {
			return fmt.Errorf("no pod of %s is on %s", held, revision)
		}
		return nil
	})
	w.isUnderWay(t, held)
	t.Logf("%s moves to %s, and is held", held, revision)
}

func (w *world) isUnderWay(t testing.TB, held string) {
	t.Helper()
	harness.WaitFor(t, w, defaultIstio(), func(i *v1.Istio) error {
		if m := i.Status.WorkloadMigration; m == nil || m.State != v1.WorkloadMigrationStateInProgress {
			return fmt.Errorf("while %s is held, the migration is %+v", held, m)
		}
		return nil
	})
}

// ends lets the held workload go on, and waits until all have arrived, each by the given number of pod templates: none was restarted twice.
func (w *world) ends(t testing.TB, from, revision, held string, rollouts int) {
	t.Helper()
	w.isUnderWay(t, held)
	last := workloads[len(workloads)-1]
	w.runs(t, last, "", rollouts-1)
	w.Release(t, "shop", cluster.ReadyAfter, map[string]string{"app": held})
	for _, name := range workloads {
		w.runs(t, name, revision, rollouts)
	}
	harness.WaitFor(t, w, defaultIstio(), func(i *v1.Istio) error {
		m := i.Status.WorkloadMigration
		if m == nil || m.State != v1.WorkloadMigrationStateCompleted || int(m.MigratedWorkloads) != len(workloads) || i.Status.ObservedGeneration != i.Generation {
			return fmt.Errorf("the migration is %+v:%s", m, harness.DescribeConditions(i.Status.Conditions))
		}
		return nil
	})
	harness.WaitForDeletion(t, w, &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: from}})
	w.isHealthy(t)
	t.Logf("all workloads run on %s", revision)
}

func (w *world) podsOf(ctx context.Context, app string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := w.List(ctx, &pods, client.InNamespace("shop"), client.MatchingLabels{"app": app})
	return pods.Items, err
}

// runs waits until a Deployment is ready with a pod template that is its nth, and its pods are on a revision, or on any if that is empty.
func (w *world) runs(t testing.TB, name, revision string, rollouts int) {
	t.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	harness.WaitFor(t, w, deployment, func(d *appsv1.Deployment) error {
		if s := d.Status; s.ObservedGeneration < d.Generation || s.Replicas != 1 || s.UpdatedReplicas != 1 || s.ReadyReplicas != 1 {
			return fmt.Errorf("it is at %+v", s)
		}
		pods, err := w.podsOf(t.Context(), name)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if got := pod.Annotations[v1.AnnotationRevision]; revision != "" && got != revision {
				return fmt.Errorf("pod %s is on %q", pod.Name, got)
			}
		}
		if got := d.Annotations[rolloutAnnotation]; got != strconv.Itoa(rollouts) {
			return wait.Permanent(errors.New("it is at pod template " + got + ", not " + strconv.Itoa(rollouts)))
		}
		return nil
	})
}
