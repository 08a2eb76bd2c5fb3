package harness

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// Create creates an object, and deletes it as DeleteAfter does.
func Create[T client.Object](t testing.TB, c client.Client, object T) T {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
	DeleteAfter(t, c, object)
	return object
}

// DeleteAfter deletes an object when the test ends, if the cluster is one that is kept: otherwise the object ends with the
// cluster, because to delete what it owns takes Kubernetes longer than most tests take.
func DeleteAfter(t testing.TB, c client.Client, object client.Object) {
	if os.Getenv(cluster.DirVariable) == "" {
		return
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := client.IgnoreNotFound(c.Delete(context.Background(), object, client.GracePeriodSeconds(0))); err != nil {
			t.Errorf("delete %T %s: %v", object, object.GetName(), err)
		}
	})
}

// Change reads an object, changes it and writes it back, until there is no conflict.
func Change[T client.Object](t testing.TB, c client.Client, object T, change func(T)) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return c.Update(ctx, object)
	})
}

// WaitFor reads an object until check returns no error, and returns the object.
func WaitFor[T client.Object](t testing.TB, c client.Reader, object T, check func(T) error) T {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if err := check(object); err != nil {
			return fmt.Errorf("%T %s: %w", object, object.GetName(), err)
		}
		return nil
	})
	return object
}

// WaitForDeletion waits until an object is gone.
func WaitForDeletion(t testing.TB, c client.Reader, object client.Object) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return fmt.Errorf("%T %s is still there", object, object.GetName())
		}
		return client.IgnoreNotFound(err)
	})
}

// ListAll lists the objects of a cluster of all kinds that can be created and listed, but for the kinds that are left out.
func ListAll(ctx context.Context, c *cluster.Cluster, reader client.Reader, leftOut ...string) ([]*unstructured.Unstructured, error) {
	finder, err := discovery.NewDiscoveryClientForConfig(c.Config())
	if err != nil {
		return nil, err
	}
	lists, err := finder.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "create") || slices.Contains(leftOut, resource.Kind) {
				continue
			}
			objects := &unstructured.UnstructuredList{}
			objects.SetGroupVersionKind(version.WithKind(resource.Kind + "List"))
			if err := reader.List(ctx, objects); err != nil {
				return nil, fmt.Errorf("list %s: %w", resource.Name, err)
			}
			for i := range objects.Items {
				all = append(all, &objects.Items[i])
			}
		}
	}
	return all, nil
}

// CheckCondition returns an error unless a condition has a status, or any if that is empty, a reason, and a message that
// contains all fragments.
func CheckCondition(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string, fragments ...string) error {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || status != "" && c.Status != status || c.Reason != reason {
		return fmt.Errorf("condition %s is %+v, want %s %s", kind, c, status, reason)
	}
	return CheckMessage(c, fragments...)
}

// CheckMessage returns an error unless the message of a condition contains all fragments.
func CheckMessage(c *metav1.Condition, fragments ...string) error {
	for _, f := range fragments {
		if !strings.Contains(c.Message, f) {
			return fmt.Errorf("condition %s has message %q, which does not contain %q", c.Type, c.Message, f)
		}
	}
	return nil
}

// DescribeConditions puts each condition on a line of its own.
func DescribeConditions(conditions []metav1.Condition) string {
	text := ""
	for _, c := range conditions {
		text += fmt.Sprintf("\n  %s=%s %s (generation %d): %s", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
	return text
}
