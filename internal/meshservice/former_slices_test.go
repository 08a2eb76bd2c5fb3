package meshservice

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// Slices of the former group are moved, whatever the process dies after, and one that was moved before is not overwritten.
func TestSlicesAreMoved(t *testing.T) {
	scheme := runtime.NewScheme()
	former := kumav1alpha1.GroupVersion.WithKind(fairleadv1alpha1.MeshConsumerSliceKind)
	scheme.AddKnownTypeWithName(former, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(former.GroupVersion().WithKind(former.Kind+"List"), &unstructured.UnstructuredList{})
	if err := fairleadv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	makeFormer := func(name string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{
			"mesh": "default", "intent": "one", "batchSize": int64(2),
			"consumers": []any{map[string]any{"name": "shop/Deployment/" + name, "state": "Switched", "switched": true, "since": "2026-03-01T12:00:00Z"}},
		}}
		object.SetGroupVersionKind(former)
		object.SetName("default-" + name)
		object.SetLabels(map[string]string{kumav1alpha1.LabelMesh: "default", kumav1alpha1.LabelManagedBy: kumav1alpha1.ManagedBy})
		return object
	}
	newer := &fairleadv1alpha1.MeshConsumerSlice{ObjectMeta: metav1.ObjectMeta{Name: "default-b"}, Mesh: "default", Intent: "two"}
	for deaths := range 4 {
		writes := 0
		errDied := errors.New("died")
		count := func() error {
			if writes++; writes == deaths {
				return errDied
			}
			return nil
		}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(makeFormer("a"), makeFormer("b"), newer.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
				return errors.Join(c.Create(ctx, object, o...), count())
			},
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
				return errors.Join(c.Delete(ctx, object, o...), count())
			},
		}).Build()
		if err := moveSlices(t.Context(), c, c); err != nil && !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		if err := moveSlices(t.Context(), c, c); err != nil {
			t.Fatal(err)
		}
		var left unstructured.UnstructuredList
		left.SetGroupVersionKind(former.GroupVersion().WithKind(former.Kind + "List"))
		var moved fairleadv1alpha1.MeshConsumerSliceList
		if err := errors.Join(c.List(t.Context(), &left), c.List(t.Context(), &moved)); err != nil {
			t.Fatal(err)
		}
		if len(left.Items) != 0 || len(moved.Items) != 2 {
			t.Fatalf("killed after write %d: %d are left, and %d moved", deaths, len(left.Items), len(moved.Items))
		}
		a, b := moved.Items[0], moved.Items[1]
		if a.Intent != "one" || a.BatchSize != 2 || a.Labels[kumav1alpha1.LabelMesh] != "default" || len(a.Consumers) != 1 || !a.Consumers[0].Switched || b.Intent != "two" {
			t.Errorf("killed after write %d: moved are %+v and %+v", deaths, a, b)
		}
	}
}

// Most clusters do not have the former kind.
func TestNoSlicesToMove(t *testing.T) {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return &meta.NoKindMatchError{}
		},
	}).Build()
	if err := moveSlices(t.Context(), c, c); err != nil {
		t.Error(err)
	}
}
