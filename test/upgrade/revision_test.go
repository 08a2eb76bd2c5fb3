package upgrade_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/injector"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const (
	oldRevision = "default-v1-24-0"
	newRevision = "default-v1-26-0"
)

// The first of two workloads has been moved and is not ready yet; the second one waits for its batch.
var revision = story{
	passage: "revision",
	flags: func(*world) []string {
		charts, err := filepath.Abs("testdata/charts")
		if err != nil {
			panic(err)
		}
		return []string{"--chart-dir", charts}
	},
	inject: func(t testing.TB, w *world) {
		if err := injector.Install(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	},
	begin: func(t testing.TB, w *world) {
		w.namespace(t, "istio-system", map[string]string{injector.Label: injector.Policy})
		w.apply(t, `
apiVersion: sailoperator.io/v1
kind: Istio
metadata: {name: default}
spec:
  version: v1.24.0
  namespace: istio-system
  updateStrategy:
    type: RevisionBased
    inactiveRevisionDeletionGracePeriodSeconds: 0
    workloadMigration:
      strategy: Batched
      batched: {batchSize: 1, delayBetweenBatches: 0s, readinessTimeout: 24h}
`)
		w.becomesReady(t)
		w.namespace(t, "shop", map[string]string{injector.Label: injector.Policy, v1.LabelRevision: oldRevision})
		w.apply(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop}
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart, test.fairlead.dev/held-on: default-v1-26-0}}
    spec: {containers: [{name: cart, image: cart}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: checkout, namespace: shop}
spec:
  selector: {matchLabels: {app: checkout}}
  template:
    metadata: {labels: {app: checkout}}
    spec: {containers: [{name: checkout, image: checkout}]}
`)
		w.runOn(t, oldRevision, "cart", "checkout")
		harness.Change(t, w, defaultIstio(), func(i *v1.Istio) { i.Spec.Version = "v1.26.0" })
		wait.Until(t, func(ctx context.Context) error {
			if err := w.operator.Alive(); err != nil {
				return err
			}
			pods, err := w.podsOf(ctx, "cart")
			if err != nil {
				return err
			}
			for _, pod := range pods {
				if pod.Annotations[v1.AnnotationRevision] == newRevision {
					return nil
				}
			}
			return fmt.Errorf("no pod of cart is on %s", newRevision)
		})
		harness.WaitFor(t, w, defaultIstio(), func(i *v1.Istio) error {
			if m := i.Status.WorkloadMigration; m == nil || m.State != v1.WorkloadMigrationStateInProgress {
				return fmt.Errorf("the migration is %+v", m)
			}
			return nil
		})
	},
	end: func(t testing.TB, w *world) {
		held := w.sets(t, "cart")
		w.Release(t, "shop", cluster.ReadyAfter, map[string]string{"app": "cart"})
		w.runOn(t, newRevision, "cart", "checkout")
		harness.WaitFor(t, w, defaultIstio(), func(i *v1.Istio) error {
			if m := i.Status.WorkloadMigration; m == nil || m.State != v1.WorkloadMigrationStateCompleted {
				return fmt.Errorf("the migration is %+v:%s", m, harness.DescribeConditions(i.Status.Conditions))
			}
			return nil
		})
		if now := w.sets(t, "cart"); held != 2 || now != 2 {
			t.Errorf("cart had %d ReplicaSets when the operator came, and has %d: it was restarted again", held, now)
		}
		harness.WaitForDeletion(t, w, &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: oldRevision}})
		harness.WaitForDeletion(t, w, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "istio-system", Name: "istiod-" + oldRevision}})
		w.becomesReady(t)
	},
}

func defaultIstio() *v1.Istio { return &v1.Istio{ObjectMeta: metav1.ObjectMeta{Name: "default"}} }

func (w *world) becomesReady(t testing.TB) {
	t.Helper()
	harness.WaitFor(t, w, defaultIstio(), func(i *v1.Istio) error {
		if err := w.operator.Alive(); err != nil {
			return err
		}
		if i.Status.ObservedGeneration != i.Generation || i.Status.State != v1.StateHealthy {
			return fmt.Errorf("the state is %s:%s", i.Status.State, harness.DescribeConditions(i.Status.Conditions))
		}
		return nil
	})
}

func (w *world) podsOf(ctx context.Context, app string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := w.List(ctx, &pods, client.InNamespace("shop"), client.MatchingLabels{"app": app})
	return pods.Items, err
}

// sets counts the ReplicaSets of a Deployment: one for each pod template that it has had.
func (w *world) sets(t testing.TB, app string) int {
	t.Helper()
	var sets appsv1.ReplicaSetList
	if err := w.List(t.Context(), &sets, client.InNamespace("shop"), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	return len(sets.Items)
}

// runOn waits until Deployments are ready, with all pods on a revision.
func (w *world) runOn(t testing.TB, revision string, names ...string) {
	t.Helper()
	for _, name := range names {
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
				if got := pod.Annotations[v1.AnnotationRevision]; pod.DeletionTimestamp == nil && got != revision {
					return fmt.Errorf("pod %s is on %q", pod.Name, got)
				}
			}
			return nil
		})
	}
}
