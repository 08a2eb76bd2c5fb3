package revision_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// apply writes YAML as `kubectl apply --server-side` does.
func (w *world) apply(t testing.TB, manifests string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := chart.Decode(manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		err := w.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("kubectl"))
		if err != nil {
			t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		harness.DeleteAfter(t, w, object)
	}
	return objects
}

// delete removes an object and waits until it is gone.
func (w *world) delete(t testing.TB, object client.Object) {
	t.Helper()
	if err := w.Delete(t.Context(), object); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	wait.Until(t, func(ctx context.Context) error { return w.isGone(ctx, object) })
}

// isGone takes another one of the same name for nothing. An Istio is gone when its revisions are.
func (w *world) isGone(ctx context.Context, object client.Object) error {
	found := object.DeepCopyObject().(client.Object)
	err := w.Get(ctx, client.ObjectKeyFromObject(object), found)
	switch {
	case apierrors.IsNotFound(err), err == nil && object.GetUID() != "" && found.GetUID() != object.GetUID():
		if _, isIstio := object.(*v1.Istio); isIstio {
			return w.withoutRevisions(ctx, object)
		}
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%T %s is still there: %s", object, object.GetName(), said(found))
}

func (w *world) withoutRevisions(ctx context.Context, istio client.Object) error {
	var list v1.IstioRevisionList
	if err := w.List(ctx, &list); err != nil {
		return err
	}
	for i := range list.Items {
		if revision := &list.Items[i]; metav1.IsControlledBy(revision, istio) {
			return fmt.Errorf("IstioRevision %s is still there: %s", revision.Name, said(revision))
		}
	}
	return nil
}

// until reads an object until it is as it should be, and returns it.
func until[T client.Object](t testing.TB, w *world, object T, is func(T) error) T {
	t.Helper()
	return harness.WaitFor(t, w, object, func(object T) error {
		if err := is(object); err != nil {
			return fmt.Errorf("%w; its conditions are:%s", err, said(object))
		}
		return nil
	})
}

// asWanted is an error if there is a difference.
func asWanted(diff string) error {
	if diff == "" {
		return nil
	}
	return fmt.Errorf("(-want +got)\n%s", diff)
}

// condition of an Istio, IstioRevision or IstioRevisionTag, as far as it speaks of the latest spec.
func condition(object client.Object, kind v1.ConditionType) metav1.Condition {
	if found := meta.FindStatusCondition(conditions(object), string(kind)); found != nil && found.ObservedGeneration == object.GetGeneration() {
		return *found
	}
	return metav1.Condition{Type: string(kind), Status: metav1.ConditionUnknown}
}

func conditions(object client.Object) []metav1.Condition {
	switch object := object.(type) {
	case *v1.Istio:
		return object.Status.Conditions
	case *v1.IstioRevision:
		return object.Status.Conditions
	case *v1.IstioRevisionTag:
		return object.Status.Conditions
	}
	return nil
}

// said are the conditions in short.
func said(object client.Object) string { return harness.DescribeConditions(conditions(object)) }

// says waits for a condition with a reason, and returns it.
func says[T client.Object](t testing.TB, w *world, object T, kind v1.ConditionType, reason v1.Reason) metav1.Condition {
	t.Helper()
	until(t, w, object, func(object T) error {
		if got := condition(object, kind); got.Reason != string(reason) {
			return fmt.Errorf("%s is not yet for reason %s", kind, reason)
		}
		return nil
	})
	return condition(object, kind)
}

// ready waits until a control plane serves.
func ready[T client.Object](t testing.TB, w *world, object T) T {
	t.Helper()
	says(t, w, object, v1.ConditionReady, v1.ReasonIstiodReady)
	return object
}

// points waits until a tag has been led to a revision, and nothing is left to do.
func (w *world) points(t testing.TB, tag *v1.IstioRevisionTag, revision string) {
	t.Helper()
	until(t, w, tag, func(tag *v1.IstioRevisionTag) error {
		if tag.Status.IstioRevision != revision || condition(tag, v1.ConditionReconciled).Status != metav1.ConditionTrue {
			return fmt.Errorf("it points to %q, not to %s", tag.Status.IstioRevision, revision)
		}
		return nil
	})
}

// istiod runs a real one behind a revision's Service, until the cluster is stopped.
func (w *world) istiod(t testing.TB, namespace, revision string) {
	t.Helper()
	if _, err := cluster.Localkube("istiod", "--dir", w.Dir, "--namespace", namespace, "--revision", revision, "--wait", wait.Deadline().String()); err != nil {
		t.Fatal(err)
	}
}
