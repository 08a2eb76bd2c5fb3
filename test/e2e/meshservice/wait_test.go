package meshservice_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// create makes objects, in the test's namespace unless they are in another, and in its mesh.
func (s *stage) create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		s.place(o)
		if err := s.Create(t.Context(), o, client.FieldOwner("people")); err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

func (s *stage) place(o client.Object) {
	if o.GetNamespace() == "" {
		o.SetNamespace(s.namespace)
	}
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[kumav1alpha1.LabelMesh] = s.mesh
	o.SetLabels(labels)
}

// change reads an object of the test, changes it and writes it back, until nobody was faster.
func (s *stage) change(t testing.TB, object client.Object, change func()) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := s.read(ctx, object); err != nil {
			return err
		}
		change()
		return s.Update(ctx, object, client.FieldOwner("people"))
	})
}

func (s *stage) read(ctx context.Context, object client.Object) error {
	key := client.ObjectKey{Namespace: s.namespace, Name: object.GetName()}
	if _, is := object.(*kumav1alpha1.Mesh); is {
		key.Namespace = ""
	}
	return s.Get(ctx, key, object)
}

// until reads an object until it is as it should be.
func (s *stage) until(t testing.TB, object client.Object, is func() error) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := s.read(ctx, object); err != nil {
			return err
		}
		return is()
	})
}

// gone waits until there is no such object.
func (s *stage) gone(t testing.TB, object client.Object) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := s.read(ctx, object); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T %s is still there: %v", object, object.GetName(), err)
		}
		return nil
	})
}

// setMode sets the mode of the test's mesh, and waits until it is in force.
func (s *stage) setMode(t testing.TB, mode kumav1alpha1.Mode) {
	t.Helper()
	mesh := s.meshObject()
	s.change(t, mesh, func() { mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: mode} })
	s.until(t, mesh, func() error {
		if mesh.Status.Mode != mode || mesh.Status.ObservedGeneration != mesh.Generation {
			return fmt.Errorf("Mesh %s is in mode %q, and not %s: %+v", s.mesh, mesh.Status.Mode, mode, mesh.Status.Conditions)
		}
		return nil
	})
}

func (s *stage) meshObject() *kumav1alpha1.Mesh {
	return &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: s.mesh}}
}

// enter a command about the test's mesh, which is to end with a code and to say some things.
func (s *stage) enter(t testing.TB, code int, verb string, args []string, says ...string) string {
	t.Helper()
	result := harness.RunCommand(t, s.Cluster, append([]string{verb, "mesh", s.mesh}, args...)...)
	text := result.Stdout + result.Stderr
	if result.Code != code {
		t.Errorf("%s ended with %d, want %d:\n%s", verb, result.Code, code, text)
	}
	said := strings.Join(strings.Fields(text), " ")
	for _, want := range says {
		if !strings.Contains(said, want) {
			t.Errorf("%s did not say %q:\n%s", verb, want, text)
		}
	}
	return text
}
