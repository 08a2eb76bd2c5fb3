package upgrade_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/environmentd"
)

// The second generation of an environment catches up, and the first one serves.
var rollout = story{
	passage: "rollout",
	flags: func(w *world) []string {
		fleet := environmentd.Start()
		w.fleet = fleet
		return []string{
			"--leader-election-namespace=fairlead-system", "--environmentd-url", fleet.URL(), "--environmentd-timeout=1h",
		}
	},
	begin: func(t testing.TB, w *world) {
		w.namespace(t, "shop", nil)
		w.apply(t, `
apiVersion: v1
kind: Secret
metadata: {name: backend, namespace: shop}
stringData: {metadata_backend_url: "postgres://metadata.shop.svc", persist_backend_url: "s3://persist"}
---
apiVersion: materialize.cloud/v1alpha2
kind: Materialize
metadata: {name: mz, namespace: shop}
spec:
  environmentdImageRef: materialize/environmentd:v1
  backendSecretName: backend
  balancerdReplicas: 1
  consoleReplicas: 1
`)
		w.generation(t, 1, v1alpha2.ReasonApplied)
		w.fleet.(*environmentd.Fleet).Of("shop/mz/2").Behave(environmentd.Manner{CatchesUp: true})
		harness.Change(t, w, theEnvironment(), func(m *v1alpha2.Materialize) { m.Spec.EnvironmentdImageRef = "materialize/environmentd:v2" })
		w.generation(t, 1, v1alpha2.ReasonApplying, "environmentd has not caught up yet")
	},
	end: func(t testing.TB, w *world) {
		m := w.generation(t, 2, v1alpha2.ReasonApplied)
		next := w.set(m, 2)
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(next), next); err != nil {
			t.Fatal(err)
		}
		if next.CreationTimestamp.After(m.Status.Conditions[0].LastTransitionTime.Time) {
			t.Errorf("%s was created anew", next.Name)
		}
		if asked := w.fleet.(*environmentd.Fleet).Of("shop/mz/1").Asked(); len(asked) > 0 {
			t.Errorf("the generation that served was asked: %v", asked)
		}
		harness.WaitForDeletion(t, w, w.set(m, 1))
	},
}

func theEnvironment() *v1alpha2.Materialize {
	return &v1alpha2.Materialize{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mz"}}
}

func (w *world) set(m *v1alpha2.Materialize, generation int) *appsv1.StatefulSet {
	name := fmt.Sprintf("mz%s-environmentd-%d", m.Status.ResourceID, generation)
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// generation waits until one serves, and the rollout says this.
func (w *world) generation(t testing.TB, active int64, reason v1alpha2.Reason, fragments ...string) *v1alpha2.Materialize {
	t.Helper()
	return harness.WaitFor(t, w, theEnvironment(), func(m *v1alpha2.Materialize) error {
		if err := w.operator.Alive(); err != nil {
			return err
		}
		if int64(m.Status.ActiveGeneration) != active {
			return fmt.Errorf("generation %d serves:%s", m.Status.ActiveGeneration, harness.DescribeConditions(m.Status.Conditions))
		}
		return harness.CheckCondition(m.Status.Conditions, v1alpha2.ConditionUpToDate, "", string(reason), fragments...)
	})
}
