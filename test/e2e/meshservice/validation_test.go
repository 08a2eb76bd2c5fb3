package meshservice_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestModeValidation(t *testing.T) {
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
	s.cart.answeredFrom(t, tag, map[string]int{east: 1, west: 1})
	s.cart.answeredFrom(t, cluster, map[string]int{east: 1})
	s.calledAt(t, s.cart, "backend")
	before := s.cart.config()
	var dataplane kumav1alpha1.Dataplane
	dataplane.Name = s.cart.id.Name
	if err := s.read(t.Context(), &dataplane); err != nil {
		t.Fatal(err)
	}

	s.annotate(t, s.cart.id, kumav1alpha1.AnnotationReachableBackends, "refs: [{kind: MeshServices, name: backend}]")
	wait.Until(t, func(ctx context.Context) error {
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
