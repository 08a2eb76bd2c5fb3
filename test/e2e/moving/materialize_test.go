package moving_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// materializeOperator is the Deployment of a Materialize operator.
const materializeOperator = "materialize/materialize-operator"

// onlyV1alpha1 is the CRD as the Materialize operator installs it.
func onlyV1alpha1(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Spec.Conversion = nil
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name != "v1alpha1" })
	crd.Spec.Versions[0].Storage = true
}

func production() *v1alpha2.Materialize {
	return &v1alpha2.Materialize{ObjectMeta: metav1.ObjectMeta{Namespace: "materialize-environment", Name: "production"}}
}

// TestMoveFromMaterializeOperator: an environment whose second generation serves.
func TestMoveFromMaterializeOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "cluster", "rollout")
	w.installCRDs(t, "rollout", "orchestratord.materialize.cloud", onlyV1alpha1)
	w.apply(t, "materialize-operator.yaml", "orchestratord.materialize.cloud")
	for _, name := range []string{"mza1b2c3d4e5-environmentd-2", "mza1b2c3d4e5-cluster-u1-replica-u1-gen-2"} {
		w.runs(t, name)
	}
	for _, name := range []string{"mza1b2c3d4e5-balancerd", "mza1b2c3d4e5-console"} {
		w.serving(t, "materialize-environment/"+name)
	}
	fleet := environmentd.Start()
	defer fleet.Close()

	w.serving(t, materializeOperator)
	m := move{world: w, passage: "rollout", system: "Materialize operator", other: w.deployed(materializeOperator), flags: []string{"--environmentd-url=" + fleet.URL()}}
	m.holdsBeside(t)
	before := m.running(t, m.other.namespace)
	m.takesOver(t)
	m.upToDate(t, 2)
	unchanged(t, before, m.running(t, m.other.namespace))
	m.checkSays(t, "ok")

	// The next rollout.
	harness.Change(t, w, production(), func(m *v1alpha2.Materialize) {
		m.Spec.EnvironmentdImageRef = "docker.io/materialize/environmentd:v26.1.0"
	})
	m.upToDate(t, 3)
	w.runs(t, "mza1b2c3d4e5-environmentd-3")
	harness.WaitForDeletion(t, w, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "materialize-environment", Name: "mza1b2c3d4e5-environmentd-2"}})
	for _, app := range []string{"balancerd", "console"} {
		name := "mza1b2c3d4e5-" + app
		harness.WaitFor(t, w, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "materialize-environment", Name: name}}, func(d *appsv1.Deployment) error {
			if image := d.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":v26.1.0") {
				return fmt.Errorf("%s runs %s after the rollout", app, image)
			}
			return nil
		})
		w.serving(t, "materialize-environment/"+name)
	}
	m.goesBackToV1alpha1(t)
}

// goesBackToV1alpha1 leaves what a Materialize operator knows: environments that are stored as v1alpha1, at rest.
func (m move) goesBackToV1alpha1(t *testing.T) {
	t.Helper()
	before := m.running(t, m.other.namespace)
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "materializes.materialize.cloud"}}
	const added = "Added"
	harness.Change(t, m, crd, func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			version := &crd.Spec.Versions[i]
			if version.Storage = version.Name == "v1alpha1"; version.Storage {
				version.AdditionalPrinterColumns = append(version.AdditionalPrinterColumns,
					apiextensionsv1.CustomResourceColumnDefinition{Name: added, Type: "string", JSONPath: ".metadata.name"})
			}
		}
	})
	// What is written before the API server heeds the change would be stored as before, and could not be read without the operator. It
	// heeds the whole CRD at once, columns and storage.
	wait.Until(t, func(ctx context.Context) error {
		columns, err := m.columns(ctx)
		if err == nil && !slices.Contains(columns, added) {
			err = fmt.Errorf("the API server does not heed the changed CRD: a Materialize has columns %q", columns)
		}
		return err
	})
	old := &unstructured.Unstructured{}
	old.SetAPIVersion("materialize.cloud/v1alpha1")
	old.SetKind(v1alpha2.MaterializeKind)
	old.SetNamespace(production().Namespace)
	old.SetName(production().Name)
	harness.Change(t, m, old, func(m *unstructured.Unstructured) { // which stores it anew
		m.SetAnnotations(map[string]string{"example.com/stored-as": "v1alpha1"})
	})
	wait.Until(t, func(ctx context.Context) error {
		if err := m.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		crd.Status.StoredVersions = []string{"v1alpha1"}
		return m.Status().Update(ctx, crd)
	})
	m.uninstalls(t)
	harness.Change(t, m, crd, onlyV1alpha1)

	harness.WaitFor(t, m, old, func(live *unstructured.Unstructured) error {
		spec, _ := live.Object["spec"].(map[string]any)
		status, _ := live.Object["status"].(map[string]any)
		generation, _, _ := unstructured.NestedInt64(status, "activeGeneration")
		if spec["requestRollout"] == nil || spec["requestRollout"] != status["lastCompletedRolloutRequest"] || generation != 3 || status["resourceId"] != "a1b2c3d4e5" ||
			spec["environmentdImageRef"] != "docker.io/materialize/environmentd:v26.1.0" || len(live.GetFinalizers()) > 0 {
			return fmt.Errorf("spec %v, status %v, finalizers %v", spec, status, live.GetFinalizers())
		}
		return nil
	})
	unchanged(t, before, m.running(t, m.other.namespace))
}

// columns are those that kubectl shows of Materializes in v1alpha1.
func (w world) columns(ctx context.Context) ([]string, error) {
	clients, err := kubernetes.NewForConfig(w.Config())
	if err != nil {
		return nil, err
	}
	raw, err := clients.CoreV1().RESTClient().Get().AbsPath("/apis/materialize.cloud/v1alpha1/materializes").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return nil, err
	}
	var names []string
	for _, column := range table.ColumnDefinitions {
		names = append(names, column.Name)
	}
	return names, nil
}

// upToDate waits until Fairlead reports that a generation serves the spec.
func (w world) upToDate(t *testing.T, generation int64) {
	t.Helper()
	harness.WaitFor(t, w, production(), func(live *v1alpha2.Materialize) error {
		s := live.Status
		if s.ActiveGeneration != generation || s.ObservedGeneration != live.Generation || s.LastCompletedRolloutHash == "" || s.LastCompletedRolloutHash != s.RequestedRolloutHash {
			return fmt.Errorf("generation %d: %s", s.ActiveGeneration, harness.DescribeConditions(s.Conditions))
		}
		return harness.CheckCondition(s.Conditions, v1alpha2.ConditionUpToDate, metav1.ConditionTrue, string(v1alpha2.ReasonApplied))
	})
}

// runs waits until the pods of a StatefulSet are ready.
func (w world) runs(t *testing.T, name string) {
	t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "materialize-environment", Name: name}}
	harness.WaitFor(t, client.Reader(w), set, func(set *appsv1.StatefulSet) error {
		if set.Status.ReadyReplicas != *set.Spec.Replicas {
			return fmt.Errorf("not ready: %+v", set.Status)
		}
		return nil
	})
}
