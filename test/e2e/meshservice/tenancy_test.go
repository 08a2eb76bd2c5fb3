package meshservice_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestTenantClaimsService: a Dataplane with the tag of a service of a universal zone gets none of its calls. An event on it, the
// Mesh and the command name the tag and the remedy, and with the remedy it is part of the service.
func TestTenantClaimsService(t *testing.T) {
	t.Parallel()
	s := newStage(t, kumav1alpha1.ModeEverywhere)
	payments := "payments-" + s.namespace
	ingress := s.ingress(t, somewhere)
	ingress.Spec.AvailableServices = []kumav1alpha1.AvailableService{{
		Mesh: s.mesh, Instances: 1, Tags: map[string]string{kumav1alpha1.TagService: payments, kumav1alpha1.TagZone: west},
	}}
	s.create(t, ingress)
	cart := s.connect(t, s.runs(t, deployment("cart", 0)))
	cart.answeredFrom(t, payments, map[string]int{west: 1})

	s.written(t, fmt.Sprintf(`
apiVersion: kuma.io/v1alpha1
kind: Dataplane
metadata: {name: thief, namespace: %[1]s, labels: {kuma.io/mesh: %[2]s}}
spec:
  networking:
    address: %[3]s
    inbound: [{port: 8080, tags: {kuma.io/service: %[4]s}}]
`, s.namespace, s.mesh, s.address(), payments))
	remedy := "add " + payments + " to the annotation fairlead.dev/allowed-services of Namespace " + s.namespace
	s.warned(t, kumav1alpha1.DataplaneKind, "thief", kumav1alpha1.ReasonNotAllowed, "tags[kuma.io/service]: "+payments, remedy)
	mesh := s.meshObject()
	s.until(t, mesh, func() error {
		return harness.CheckCondition(mesh.Status.Conditions, kumav1alpha1.ConditionServed, metav1.ConditionTrue, kumav1alpha1.ReasonIncomplete,
			"Dataplane "+s.namespace+"/thief", remedy)
	})
	// Another controller writes this part of the status, and may come later.
	s.until(t, mesh, func() error {
		if mesh.Status.ObservedGeneration != mesh.Generation {
			return fmt.Errorf("generation %d is seen of %d", mesh.Status.ObservedGeneration, mesh.Generation)
		}
		return nil
	})
	s.enter(t, 0, "status", nil, remedy)
	cart.answeredFrom(t, payments, map[string]int{west: 1})
	policies := harness.RunCommand(t, s.Cluster, "status", "dataplane", "thief", "-n", s.namespace, "--policies")
	if !strings.Contains(strings.Join(strings.Fields(policies.Stdout), " "), remedy) {
		t.Errorf("status of the Dataplane does not name the remedy:\n%s", policies.Stdout)
	}

	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, kumav1alpha1.AnnotationAllowedServices, payments)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if err := s.Patch(t.Context(), namespace, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	cart.answeredFrom(t, payments, map[string]int{east: 1, west: 1})
	s.until(t, mesh, func() error {
		return harness.CheckCondition(mesh.Status.Conditions, kumav1alpha1.ConditionServed, metav1.ConditionTrue, kumav1alpha1.ReasonServed)
	})
}

// TestTenantNamesMesh: a pod that names another mesh than that of its namespace has no Dataplane, until the Namespace allows the mesh.
func TestTenantNamesMesh(t *testing.T) {
	t.Parallel()
	s, vault := newStage(t, kumav1alpha1.ModeEverywhere), newStage(t, kumav1alpha1.ModeEverywhere)
	s.create(t, deployment("cart", 0))
	pod := &corev1.Pod{}
	wait.Until(t, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := s.List(ctx, &pods, client.InNamespace(s.namespace)); err != nil || len(pods.Items) != 1 {
			return fmt.Errorf("%d pods: %v", len(pods.Items), err)
		}
		*pod = pods.Items[0]
		return nil
	})
	s.change(t, pod, func() { metav1.SetMetaDataLabel(&pod.ObjectMeta, kumav1alpha1.LabelMesh, vault.mesh) })
	address := s.address()
	wait.Until(t, func(ctx context.Context) error {
		if err := s.read(ctx, pod); err != nil {
			return err
		}
		pod.Status = running(address)
		return s.Status().Update(ctx, pod)
	})
	s.warned(t, "Pod", pod.Name, kumav1alpha1.ReasonNotAllowed, "may not use Mesh "+vault.mesh, kumav1alpha1.AnnotationAllowedMeshes)
	dataplane := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}}
	s.gone(t, dataplane)

	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, kumav1alpha1.AnnotationAllowedMeshes, vault.mesh)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if err := s.Patch(t.Context(), namespace, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	s.until(t, dataplane, func() error {
		if got := dataplane.Labels[kumav1alpha1.LabelMesh]; got != vault.mesh {
			return fmt.Errorf("Dataplane %s is of Mesh %s", dataplane.Name, got)
		}
		return nil
	})
}

// warned waits for an event on an object of the test's namespace.
func (s *stage) warned(t testing.TB, kind, name, reason string, fragments ...string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := s.List(ctx, &list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		var seen []string
	events:
		for i := range list.Items {
			e := &list.Items[i]
			if e.Regarding.Kind != kind || e.Regarding.Name != name || e.Reason != reason {
				continue
			}
			seen = append(seen, e.Note)
			for _, fragment := range fragments {
				if !strings.Contains(e.Note, fragment) {
					continue events
				}
			}
			return nil
		}
		return fmt.Errorf("no event %s on %s %s with %q: %q", reason, kind, name, fragments, seen)
	})
}
