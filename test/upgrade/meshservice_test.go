package upgrade_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// The first of three consumers is switched; the others wait for their batches.
var meshservice = story{
	passage: "meshservice",
	flags: func(*world) []string {
		return []string{"--mesh-zone", "east", "--mesh-bind-address", "127.0.0.1:0", "--mesh-insecure", "--mesh-switch-timeout", "1s"}
	},
	begin: func(t testing.TB, w *world) {
		w.namespace(t, "shop", map[string]string{kumav1alpha1.LabelSidecarInjection: kumav1alpha1.InjectionEnabled})
		w.apply(t, `
apiVersion: kuma.io/v1alpha1
kind: Mesh
metadata: {name: default}
spec: {meshServices: {mode: ReachableBackendRefs}}
---
apiVersion: v1
kind: Service
metadata: {name: backend, namespace: shop}
spec: {selector: {app: backend}, ports: [{port: 80, targetPort: 8080, appProtocol: grpc}]}
`)
		for _, app := range []string{"backend", "cart", "checkout"} {
			w.apply(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: `+app+`, namespace: shop}
spec:
  selector: {matchLabels: {app: `+app+`}}
  template:
    metadata: {labels: {app: `+app+`}}
    spec: {containers: [{name: app, image: `+app+`, ports: [{containerPort: 8080}]}]}
`)
		}
		wait.Until(t, func(ctx context.Context) error {
			var dataplanes kumav1alpha1.DataplaneList
			var services kumav1alpha1.MeshServiceList
			if err := w.List(ctx, &dataplanes); err != nil {
				return err
			}
			if err := w.List(ctx, &services); err != nil {
				return err
			}
			if len(dataplanes.Items) != 3 || len(services.Items) != 1 || len(services.Items[0].Status.VIPs) == 0 {
				return fmt.Errorf("there are %d Dataplanes and %d MeshServices", len(dataplanes.Items), len(services.Items))
			}
			return nil
		})
		w.command(t, "migrate", "mesh", "default", "--batch-size", "1", "--delay", "1h", "--allow-disconnected", "--yes")
		w.consumers(t, map[kumav1alpha1.ConsumerState]int{kumav1alpha1.ConsumerSwitched: 1, kumav1alpha1.ConsumerWaiting: 2})
	},
	end: func(t testing.TB, w *world) {
		// The hour between two batches was over before the operator came.
		var before corev1.ConfigMapList
		if err := w.List(t.Context(), &before, client.InNamespace("kuma-system")); err != nil {
			t.Fatal(err)
		}
		w.consumers(t, map[kumav1alpha1.ConsumerState]int{kumav1alpha1.ConsumerSwitched: 2, kumav1alpha1.ConsumerWaiting: 1})
		w.command(t, "migrate", "mesh", "default", "--batch-size", "1", "--delay", "0s", "--allow-disconnected", "--yes")
		w.consumers(t, map[kumav1alpha1.ConsumerState]int{kumav1alpha1.ConsumerSwitched: 3})
		mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		harness.WaitFor(t, w, mesh, func(m *kumav1alpha1.Mesh) error {
			return harness.CheckCondition(m.Status.Conditions, kumav1alpha1.ConditionConsumersSwitched, metav1.ConditionTrue, kumav1alpha1.ReasonSwitched, "3 of 3")
		})
		for _, was := range before.Items {
			var now corev1.ConfigMap
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(&was), &now); err != nil || !maps.Equal(was.Data, now.Data) {
				t.Errorf("the addresses in %s were %v, and are %v: %v", was.Name, was.Data, now.Data, err)
			}
		}
	},
}

// consumers waits until so many are in each state.
func (w *world) consumers(t testing.TB, want map[kumav1alpha1.ConsumerState]int) {
	t.Helper()
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	harness.WaitFor(t, w, mesh, func(m *kumav1alpha1.Mesh) error {
		if err := w.operator.Alive(); err != nil {
			return err
		}
		record, err := consumers.ReadRecord(t.Context(), w, m)
		if err != nil {
			return err
		}
		got := map[kumav1alpha1.ConsumerState]int{}
		if record.Status.Migration != nil {
			for _, c := range record.Status.Migration.Consumers {
				got[c.State]++
			}
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("consumers are %v, want %v:%s", got, want, harness.DescribeConditions(m.Status.Conditions))
		}
		return nil
	})
}
