package workload_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// eventually tries until it works, and fails the test with the last error if it never does.
func eventually(t testing.TB, try func(context.Context) error) {
	t.Helper()
	wait.Until(t, try)
}

// create makes an object. It is removed when the test ends if the cluster does not end with the tests: to remove what is
// in it takes Kubernetes longer than most tests take.
func create[T client.Object](t testing.TB, w *world, object T) T {
	t.Helper()
	if err := w.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
	if os.Getenv(cluster.DirVariable) == "" {
		return object
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := client.IgnoreNotFound(w.Delete(context.Background(), object)); err != nil {
			t.Errorf("delete %T %s: %v", object, object.GetName(), err)
		}
	})
	return object
}

// until reads an object until it is as it should be, and returns it.
func until[T client.Object](t testing.TB, w *world, object T, is func(T) error) T {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if err := is(object); err != nil {
			return fmt.Errorf("%T %s: %w", object, object.GetName(), err)
		}
		return nil
	})
	return object
}

// change reads an object, changes it and writes it back, until nobody was faster.
func change[T client.Object](t testing.TB, w *world, object T, change func(T)) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return w.Update(ctx, object)
	})
}

// gone waits until an object is no more.
func gone(t testing.TB, w *world, object client.Object) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		err := w.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return fmt.Errorf("%T %s is still there", object, object.GetName())
		}
		return client.IgnoreNotFound(err)
	})
}

// condition of an Istio, as far as it speaks of the latest spec.
func condition(istio *v1.Istio, kind v1.ConditionType) metav1.Condition {
	if found := meta.FindStatusCondition(istio.Status.Conditions, string(kind)); found != nil && found.ObservedGeneration == istio.Generation {
		return *found
	}
	return metav1.Condition{Type: string(kind), Status: metav1.ConditionUnknown}
}

// said are the conditions in short.
func said(conditions []metav1.Condition) string {
	text := ""
	for _, c := range conditions {
		text += fmt.Sprintf("\n  %s=%s %s (generation %d): %s", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
	return text
}
