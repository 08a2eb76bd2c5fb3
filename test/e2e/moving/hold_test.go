package moving_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// sailOperator is the Deployment of a Sail Operator.
const sailOperator = "sail-operator/sail-operator"

// TestForeignController starts Fairlead beside a Sail Operator, by mistake and then to move in, and scales the other up again.
func TestForeignController(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "hub", "revision", "meshservice")
	w.installCRDs(t, "revision", "helm")
	w.apply(t, "sail-operator-hold.yaml", "sail-operator")
	before := w.versions(t)

	// By mistake: the passage holds, another one runs, and nothing but the condition is written.
	w.operator(t, "--passages=revision,meshservice")
	w.logged(t, 0, "passage holds", "passage=revision", "reason=ForeignController", "Deployment sail-operator/sail-operator is scaled to 1", "--take-over revision")
	w.reconcilesMeshes(t, "beside")
	w.holds(t, "acts on the kinds of the passage revision", "Deployment sail-operator/sail-operator is scaled to 1", "docs/moving/sail-operator.md")
	if text := w.answers(t, "health probes", "/readyz"); !strings.Contains(text, "passage revision: holds, ForeignController: Sail Operator acts") {
		t.Errorf("/readyz does not say that the passage holds:\n%s", text)
	}
	metrics := w.answers(t, "insecure metrics", "/metrics")
	if !strings.Contains(metrics, `fairlead_passage_held{passage="revision",reason="ForeignController",system="Sail Operator"} 1`) {
		t.Error("no metric says that the passage holds")
	}
	harness.CompareMetrics(t, "held", metrics)
	w.untouched(t, before)

	// Scaled to 0, it has left traces. Fairlead goes on only where that was asked for, which it does by itself once the other stops.
	w.scale(t, sailOperator, 0)
	w.holds(t, "has left traces", "sailoperator.io/sail-operator", "--take-over revision")
	w.untouched(t, before)
	w.scale(t, sailOperator, 1)
	w.operator(t, "--passages=revision,meshservice", "--take-over=revision")
	w.logged(t, 0, "passage holds", "passage=revision", "scale Deployment sail-operator/sail-operator to 0; then the passage goes on by itself")
	w.reconcilesMeshes(t, "refused")
	w.untouched(t, before)
	w.scale(t, sailOperator, 0)
	w.logged(t, 0, "passage goes on", "passage=revision")
	harness.WaitFor(t, w, istio(), func(live *v1.Istio) error {
		if live.Status.ObservedGeneration != live.Generation || meta.FindStatusCondition(live.Status.Conditions, fairlead.ConditionHeld) != nil ||
			meta.FindStatusCondition(live.Status.Conditions, string(v1.ConditionReconciled)) == nil || !writtenBy(live, "fairlead/revision") {
			return fmt.Errorf("Fairlead does not report on the Istio: %s", harness.DescribeConditions(live.Status.Conditions))
		}
		return nil
	})
	harness.WaitFor(t, w, &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, func(live *v1.IstioRevision) error {
		if slices.Contains(live.Finalizers, "sailoperator.io/sail-operator") {
			return errors.New("the finalizer of the other controller is left, and nobody would remove it")
		}
		return nil
	})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: "istios.sailoperator.io"}, crd); err != nil || crd.Annotations[crds.SchemaVersionAnnotation] == "" {
		t.Errorf("the CRD was not taken over: %v, %v", err, crd.Annotations)
	}

	// Somebody scales the other up again.
	since := w.Operator.Log.Len()
	w.scale(t, sailOperator, 1)
	w.logged(t, since, "passage holds", "passage=revision")
	w.logged(t, since, "the passages that can run have changed", "now=meshservice")
	w.reconcilesMeshes(t, "again")
	changed := istio()
	harness.Change(t, w, changed, func(i *v1.Istio) { i.Spec.Profile = "minimal" })
	w.reconcilesMeshes(t, "change")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(changed), changed); err != nil || changed.Status.ObservedGeneration == changed.Generation {
		t.Errorf("the Istio was reconciled beside the other controller: %v", err)
	}
	w.scale(t, sailOperator, 0)
	harness.WaitFor(t, w, istio(), func(live *v1.Istio) error {
		if live.Status.ObservedGeneration != live.Generation || meta.FindStatusCondition(live.Status.Conditions, fairlead.ConditionHeld) != nil {
			return fmt.Errorf("the Istio is not reconciled, or still says that the passage holds: %s", harness.DescribeConditions(live.Status.Conditions))
		}
		return nil
	})

	// An operator that holds is uninstalled.
	w.scale(t, sailOperator, 1)
	w.holds(t, "is scaled to 1")
	w.Operator.Kill()
	if result := harness.RunCommand(t, w.Cluster, "uninstall", "--yes", "--timeout", wait.Deadline().String()); result.Code != 0 {
		t.Fatalf("uninstall: %+v", result)
	}
	live := istio()
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil || meta.FindStatusCondition(live.Status.Conditions, fairlead.ConditionHeld) != nil {
		t.Errorf("after the uninstallation, the Istio says %s: %v", harness.DescribeConditions(live.Status.Conditions), err)
	}
}

func istio() *v1.Istio { return &v1.Istio{ObjectMeta: metav1.ObjectMeta{Name: "default"}} }

func writtenBy(object client.Object, manager string) bool {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == manager {
			return true
		}
	}
	return false
}

// holds waits until the status of the Istio says that the passage holds.
func (w world) holds(t *testing.T, parts ...string) {
	t.Helper()
	harness.WaitFor(t, w, istio(), func(live *v1.Istio) error {
		return harness.CheckCondition(live.Status.Conditions, fairlead.ConditionHeld, metav1.ConditionTrue, fairlead.ReasonForeignController, parts...)
	})
}

// reconcilesMeshes waits until an operator has reported on a new Mesh: another passage runs.
func (w world) reconcilesMeshes(t *testing.T, name string) {
	t.Helper()
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: name}}
	wait.Until(t, func(ctx context.Context) error {
		if err := w.Create(ctx, mesh); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
	harness.WaitFor(t, w, mesh, func(live *kumav1alpha1.Mesh) error {
		if live.Status.ObservedGeneration != live.Generation {
			return errors.New("no operator has reported on the Mesh")
		}
		return nil
	})
}

// versions are what nobody but the other system may change.
func (w world) versions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	revisions := &v1.IstioRevisionList{}
	if err := w.List(t.Context(), revisions); err != nil {
		t.Fatal(err)
	}
	for _, r := range revisions.Items {
		all["IstioRevision "+r.Name] = r.ResourceVersion
	}
	definitions := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := w.List(t.Context(), definitions); err != nil {
		t.Fatal(err)
	}
	for _, crd := range definitions.Items {
		if strings.HasSuffix(crd.Name, ".sailoperator.io") {
			all["CRD "+crd.Name] = crd.ResourceVersion
		}
	}
	live := istio()
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	meta.RemoveStatusCondition(&live.Status.Conditions, fairlead.ConditionHeld)
	all["Istio"] = fmt.Sprintf("generation %d, finalizers %v, status %+v", live.Generation, live.Finalizers, live.Status.State)
	all["Istio conditions"] = harness.DescribeConditions(live.Status.Conditions)
	lease := &coordinationv1.Lease{}
	err := w.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "fairlead-revision"}, lease)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	all["Lease"] = lease.Name
	return all
}

func (w world) untouched(t *testing.T, before map[string]string) {
	t.Helper()
	after := w.versions(t)
	for what, version := range before {
		if after[what] != version {
			t.Errorf("%s was changed from %q to %q", what, version, after[what])
		}
	}
	if len(after) != len(before) {
		t.Errorf("there are %v, and there were %v", after, before)
	}
}
