package mesh_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/registrar"
)

// Two ranges of two addresses each.
const (
	serviceCIDR = "10.250.0.0/30"
	tagCIDR     = "10.250.0.4/30"
)

// TestRangesExhausted: who comes too late for an address is told what to do, all others keep theirs, proxies are served as
// before, and an address that becomes free is given to one that waits.
func TestRangesExhausted(t *testing.T) {
	w := theWorld(t)
	w.again(t, "--mesh-insecure", "--mesh-service-cidr", serviceCIDR, "--mesh-tag-cidr", tagCIDR, "--mesh-service-grace", "1s")
	// Tests that follow make more services than that.
	defer w.again(t, "--mesh-insecure")
	s := newStage(t, kumav1alpha1.ModeEverywhere)
	s.create(t, service("backend"))
	s.runs(t, deployment("backend", 8080))
	cart := s.connect(t, s.runs(t, deployment("cart", 0)))
	cart.reaches(t, []string{s.tag("backend"), s.cluster("backend")}, nil)

	t.Run("tags", func(t *testing.T) {
		s.tagged(t, "backend")
		ingress := s.ingress(t, somewhere, "early")
		s.create(t, ingress)
		before := s.tagged(t, "backend", "early")
		mesh := s.meshObject()
		all := s.ingress(t, somewhere, "early", "late").Spec
		s.edit(t, ingress, func() { ingress.Spec = all })
		s.until(t, mesh, func() error {
			return saying(mesh.Status.Conditions, kumav1alpha1.ConditionVIPs, metav1.ConditionFalse, kumav1alpha1.ReasonRangeExhausted,
				tagCIDR+" is exhausted", s.tag("late"), "--mesh-tag-cidr", "mesh.tagCIDR")
		})
		if after := s.tagged(t, "backend", "early"); !maps.Equal(before, after) {
			t.Errorf("the addresses were %v, and are %v", before, after)
		}
		// Clients of gRPC call it by its name, for which it needs no address.
		cart.reaches(t, []string{s.tag("backend"), s.tag("early"), s.tag("late"), s.cluster("backend")}, nil)

		s.edit(t, ingress, func() { ingress.Spec = s.ingress(t, somewhere, "late").Spec })
		if after := s.tagged(t, "backend", "late"); after[s.tag("late")] != before[s.tag("early")] || after[s.tag("backend")] != before[s.tag("backend")] {
			t.Errorf("the addresses were %v, and are %v", before, after)
		}
		s.until(t, mesh, func() error {
			return saying(mesh.Status.Conditions, kumav1alpha1.ConditionVIPs, metav1.ConditionTrue, kumav1alpha1.ReasonAllocated)
		})
	})

	t.Run("MeshServices", func(t *testing.T) {
		one, two, three := meshService("one", nil), meshService("two", nil), meshService("three", nil)
		s.create(t, one, two)
		first, second := s.addressOf(t, one), s.addressOf(t, two)
		s.create(t, three)
		s.until(t, three, func() error {
			return saying(three.Status.Conditions, kumav1alpha1.ConditionVIPs, metav1.ConditionFalse, kumav1alpha1.ReasonRangeExhausted,
				serviceCIDR+" is exhausted", "--mesh-service-cidr", "mesh.serviceCIDR")
		})
		if len(three.Status.VIPs) != 0 || s.addressOf(t, one) != first || s.addressOf(t, two) != second || first == second {
			t.Errorf("they had %s and %s, and are %+v, %+v and %+v", first, second, one.Status.VIPs, two.Status.VIPs, three.Status.VIPs)
		}
		// What Kubernetes gives an address needs none of these.
		s.create(t, service("another"))
		s.runs(t, deployment("another", 8080))
		cart.reaches(t, []string{s.cluster("backend"), s.cluster("another")}, nil)

		if err := s.Delete(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		if third := s.addressOf(t, three); third != first {
			t.Errorf("%s was free, and it has %s", first, third)
		}
	})
}

// edit changes an object wherever it is.
func (s *stage) edit(t testing.TB, object client.Object, change func()) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		return s.Update(ctx, object, client.FieldOwner("people"))
	})
}

// tagged waits until exactly these services have the addresses of tags.
func (s *stage) tagged(t testing.TB, services ...string) map[string]string {
	t.Helper()
	var record corev1.ConfigMap
	eventually(t, func(ctx context.Context) error {
		record = corev1.ConfigMap{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: system, Name: registrar.TagsName(s.mesh)}, &record); err != nil {
			return err
		}
		for _, name := range services {
			if record.Data[s.tag(name)] == "" {
				return fmt.Errorf("%s has no address among %v", name, record.Data)
			}
		}
		if len(record.Data) != len(services) {
			return fmt.Errorf("the addresses are %v, want those of %v", record.Data, services)
		}
		return nil
	})
	return record.Data
}

// addressOf waits for the one address of a MeshService.
func (s *stage) addressOf(t testing.TB, service *kumav1alpha1.MeshService) string {
	t.Helper()
	s.until(t, service, func() error {
		if len(service.Status.VIPs) != 1 {
			return fmt.Errorf("%s has %+v: %+v", service.Name, service.Status.VIPs, service.Status.Conditions)
		}
		return saying(service.Status.Conditions, kumav1alpha1.ConditionVIPs, metav1.ConditionTrue, kumav1alpha1.ReasonAllocated)
	})
	return service.Status.VIPs[0].IP
}
