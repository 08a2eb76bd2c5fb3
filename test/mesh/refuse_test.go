package mesh_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/test/cluster"
)

func TestModesOfTheAPI(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	for name, c := range map[string]struct {
		value   any
		refused bool
	}{
		"a mode":                   {"Exclusive", false},
		"Kuma's spelling":          {"ReachableBackends", false},
		"Kuma's form":              {map[string]any{"mode": "Everywhere"}, false},
		"an unknown mode":          {"Sometimes", true},
		"an unknown mode, in form": {map[string]any{"mode": "Sometimes"}, true},
		"a number":                 {int64(1), true},
		"a list":                   {[]any{"Everywhere"}, true},
		"no mode in form":          {map[string]any{}, true},
		"more than a mode":         {map[string]any{"mode": "Everywhere", "since": "today"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mesh := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"meshServices": c.value}}}
			mesh.SetGroupVersionKind(kumav1alpha1.GroupVersion.WithKind("Mesh"))
			mesh.SetName(cluster.Name(t))
			err := w.Create(t.Context(), mesh, client.DryRunAll)
			switch {
			case !c.refused && err != nil:
				t.Error(err)
			case c.refused && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.meshServices")):
				t.Errorf("it is not refused, or nobody knows why: %v", err)
			}
		})
	}
}

// TestMalformedAnnotation: a pod whose annotation makes no sense keeps what it had, and is told.
func TestMalformedAnnotation(t *testing.T) {
	t.Parallel()
	s := newShop(t, kumav1alpha1.ModeReachableBackendRefs)
	tag, cluster := s.tag("backend"), s.cluster("backend")
	s.annotate(t, s.cart.id, kumav1alpha1.AnnotationReachableBackends, "refs: [{kind: MeshService, name: backend}]")
	s.cart.reaches(t, []string{tag, cluster}, nil)
	before := s.cart.config()
	var dataplane kumav1alpha1.Dataplane
	dataplane.Name = s.cart.id.Name
	if err := s.read(t.Context(), &dataplane); err != nil {
		t.Fatal(err)
	}

	s.annotate(t, s.cart.id, kumav1alpha1.AnnotationReachableBackends, "refs: [{kind: MeshServices, name: backend}]")
	eventually(t, func(ctx context.Context) error {
		var events corev1.EventList
		if err := s.List(ctx, &events, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == "Pod" && e.InvolvedObject.Name == s.cart.id.Name && e.Type == corev1.EventTypeWarning &&
				strings.Contains(e.Message, kumav1alpha1.AnnotationReachableBackends) && strings.Contains(e.Message, "MeshServices") {
				return nil
			}
		}
		return fmt.Errorf("pod %s has not been told", s.cart.id.Name)
	})
	// The same is true of the other pod, and what comes after it is seen.
	s.annotate(t, s.checkout.id, kumav1alpha1.AnnotationReachableBackends, "refs: [{kind: MeshService, name: backend}]")
	s.checkout.reaches(t, []string{tag, cluster}, nil)
	if diff := cmp.Diff(before, s.cart.config()); diff != "" {
		t.Errorf("its configuration has changed:\n%s", diff)
	}
	version := dataplane.ResourceVersion
	if err := s.read(t.Context(), &dataplane); err != nil {
		t.Fatal(err)
	}
	if dataplane.ResourceVersion != version {
		t.Errorf("its Dataplane was written: %+v", dataplane.Spec.Networking.TransparentProxying)
	}
}

// TestDuplicateHostnames: the oldest keeps a name that two would have.
func TestDuplicateHostnames(t *testing.T) {
	t.Parallel()
	s := newStage(t, kumav1alpha1.ModeEverywhere)
	const hostname = "backend.example.com"
	generator := &kumav1alpha1.HostnameGenerator{ObjectMeta: metav1.ObjectMeta{Name: s.mesh, Namespace: system}}
	generator.Spec.Template = hostname
	generator.Spec.Selector.MeshService = &kumav1alpha1.LabelMatch{MatchLabels: map[string]string{kumav1alpha1.LabelMesh: s.mesh}}
	s.create(t, generator)
	t.Cleanup(func() { _ = s.Delete(context.Background(), generator) })

	older, younger := meshService("zebra", nil), meshService("ant", nil)
	s.create(t, older)
	s.until(t, older, func() error {
		if a := older.Status.Addresses; len(a) != 1 || a[0].Hostname != hostname {
			return fmt.Errorf("%s has %+v", older.Name, a)
		}
		return nil
	})
	// Two of the same second would be told apart by their names.
	eventually(t, func(ctx context.Context) error {
		clock := meshService("clock", nil)
		s.place(clock)
		if err := s.Create(ctx, clock, client.DryRunAll); err != nil {
			return err
		}
		if !clock.CreationTimestamp.After(older.CreationTimestamp.Time) {
			return errors.New("it is still the same second")
		}
		return nil
	})
	s.create(t, younger)
	s.until(t, younger, func() error {
		return saying(younger.Status.Conditions, kumav1alpha1.ConditionAddressed, metav1.ConditionFalse, kumav1alpha1.ReasonHostnameCollision,
			hostname, older.Name)
	})
	if err := s.Delete(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	s.until(t, younger, func() error {
		if a := younger.Status.Addresses; len(a) != 1 || a[0].Hostname != hostname {
			return fmt.Errorf("%s has %+v", younger.Name, a)
		}
		return saying(younger.Status.Conditions, kumav1alpha1.ConditionAddressed, metav1.ConditionTrue, kumav1alpha1.ReasonAddressed)
	})
}

// TestPolicyThatRefersToNothing is told so, until there is what it refers to.
func TestPolicyThatRefersToNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	timeout := s.timeout(t, "hasty", s.tag("backend"), "1s")
	s.create(t, timeout)
	s.until(t, timeout, func() error {
		return saying(timeout.Status.Conditions, kumav1alpha1.ConditionResolved, metav1.ConditionFalse, kumav1alpha1.ReasonRefersToNothing,
			"spec.to[0].targetRef", s.tag("backend"))
	})
	s.create(t, service("backend"))
	s.runs(t, deployment("backend", 8080))
	s.until(t, timeout, func() error {
		return saying(timeout.Status.Conditions, kumav1alpha1.ConditionResolved, metav1.ConditionTrue, kumav1alpha1.ReasonResolved)
	})
}
