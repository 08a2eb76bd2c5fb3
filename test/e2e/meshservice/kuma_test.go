package meshservice_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// written creates objects as they are written, without labels of the test.
func (s *stage) written(t testing.TB, text string) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := s.Create(t.Context(), &object); err != nil {
			t.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// row is what kubectl get shows of an object, by column.
func (s *stage) row(t testing.TB, resource, name string) map[string]string {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(s.Cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := clientset.CoreV1().RESTClient().Get().
		AbsPath("/apis/kuma.io/v1alpha1/namespaces", s.namespace, resource, name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	cells := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = fmt.Sprint(table.Rows[0].Cells[i])
	}
	return cells
}

// TestKumasFields: a Dataplane and a policy name their mesh outside their labels, as Kuma's users write them, a column shows all
// items of a list, and a Mesh with mTLS is not called served.
func TestKumasFields(t *testing.T) {
	t.Parallel()
	s := newStage(t, kumav1alpha1.ModeEverywhere)
	s.create(t, service("backend"))
	s.runs(t, deployment("backend", 8080))
	s.written(t, fmt.Sprintf(`
apiVersion: kuma.io/v1alpha1
kind: Dataplane
mesh: %[1]s
metadata: {name: mine, namespace: %[2]s}
spec:
  networking:
    address: %[3]s
    inbound: [{port: 8080, tags: {kuma.io/service: mine_%[2]s_svc_80}}]
---
apiVersion: kuma.io/v1alpha1
kind: MeshTimeout
mesh: %[1]s
metadata: {name: slow, namespace: %[2]s}
spec:
  to:
    - targetRef: {kind: MeshService, name: backend}
      default: {idleTimeout: 1h}
    - targetRef: {kind: MeshService, name: nobody}
      default: {idleTimeout: 1h}
`, s.mesh, s.namespace, s.address()))
	p := s.connect(t, model.ProxyID{Mesh: s.mesh, Namespace: s.namespace, Name: "mine"})
	p.reaches(t, []string{s.cluster("backend")}, nil)

	timeout := &kumav1alpha1.MeshTimeout{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}
	s.until(t, timeout, func() error {
		return harness.CheckCondition(timeout.Status.Conditions, kumav1alpha1.ConditionResolved, metav1.ConditionFalse, kumav1alpha1.ReasonRefersToNothing, "nobody")
	})
	if got := s.row(t, "meshtimeouts", "slow")["TO"]; got != "backend,nobody" {
		t.Errorf("kubectl get shows TO %q", got)
	}

	backend := meshService("backend", nil)
	s.until(t, backend, func() error {
		if len(backend.Status.VIPs) == 0 {
			return fmt.Errorf("MeshService %s has no VIP", backend.Name)
		}
		return nil
	})
	if got := s.row(t, "meshservices", "backend")["VIPS"]; got != backend.Status.VIPs[0].IP {
		t.Errorf("kubectl get shows VIPS %q, and the status has %v", got, backend.Status.VIPs)
	}

	mesh := s.meshObject()
	served := func(status metav1.ConditionStatus, reason string, fragments ...string) {
		t.Helper()
		s.until(t, mesh, func() error {
			return harness.CheckCondition(mesh.Status.Conditions, kumav1alpha1.ConditionServed, status, reason, fragments...)
		})
	}
	s.change(t, mesh, func() { mesh.Spec.MTLS = &kumav1alpha1.MTLS{EnabledBackend: "ca-1"} })
	served(metav1.ConditionFalse, kumav1alpha1.ReasonMTLSNotServed, `"ca-1"`)
	s.change(t, mesh, func() { mesh.Spec.MTLS = nil })
	served(metav1.ConditionTrue, kumav1alpha1.ReasonIncomplete, "nobody")
}

// TestMeshWithoutStatus: the CRD of another control plane has no status subresource, and an event on the Mesh and the log say
// so. Other tests need that CRD, so it does not run beside them.
func TestMeshWithoutStatus(t *testing.T) {
	w := theWorld(t)
	// The API server takes a moment to heed a CRD that has changed. Of this Mesh it is asked whether it has.
	other := newStage(t, "")
	readStatus := func(ctx context.Context) error {
		return w.SubResource("status").Get(ctx, other.meshObject(), &kumav1alpha1.Mesh{})
	}
	scheme := func(change func(*apiextensionsv1.CustomResourceDefinition)) {
		t.Helper()
		if err := wait.Try(context.Background(), func(ctx context.Context) error {
			var crd apiextensionsv1.CustomResourceDefinition
			if err := w.Get(ctx, client.ObjectKey{Name: "meshes.kuma.io"}, &crd); err != nil {
				return err
			}
			change(&crd)
			return w.Update(ctx, &crd)
		}); err != nil {
			t.Fatal(err)
		}
	}
	var before []*apiextensionsv1.CustomResourceSubresources
	scheme(func(crd *apiextensionsv1.CustomResourceDefinition) {
		before = nil
		for i := range crd.Spec.Versions {
			before = append(before, crd.Spec.Versions[i].Subresources)
			crd.Spec.Versions[i].Subresources = nil
		}
	})
	t.Cleanup(func() {
		scheme(func(crd *apiextensionsv1.CustomResourceDefinition) {
			for i := range crd.Spec.Versions {
				crd.Spec.Versions[i].Subresources = before[i]
			}
		})
		if err := wait.Try(context.Background(), readStatus); err != nil {
			t.Error(err)
		}
	})
	wait.Until(t, func(ctx context.Context) error {
		if err := readStatus(ctx); !apierrors.IsNotFound(err) {
			return fmt.Errorf("Meshes still have a status subresource: %v", err)
		}
		return nil
	})
	s := newStage(t, "")
	wait.Until(t, func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := w.List(ctx, &list); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Kind == kumav1alpha1.MeshKind && e.Regarding.Name == s.mesh && e.Reason == kumav1alpha1.ReasonNoStatusSubresource &&
				strings.Contains(e.Note, "meshes.kuma.io has no status subresource") && strings.Contains(e.Note, "Served is ")
		}) {
			return fmt.Errorf("Mesh %s has no event of reason %s", s.mesh, kumav1alpha1.ReasonNoStatusSubresource)
		}
		return nil
	})
	// The event and the line are written side by side.
	wait.Until(t, func(context.Context) error {
		for line := range strings.Lines(w.Operator.Log.Since(0)) {
			if strings.Contains(line, "the status of a Mesh cannot be written") && strings.Contains(line, "mesh="+s.mesh) {
				return nil
			}
		}
		return errors.Join(w.Operator.Alive(), fmt.Errorf("the log does not say that the status of Mesh %s cannot be written", s.mesh))
	})
}
