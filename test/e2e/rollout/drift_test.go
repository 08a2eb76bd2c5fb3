package rollout_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// ownedObjects are all objects of an environment, by kind and name without what all names begin with.
func (e *environment) ownedObjects(t testing.TB) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	prefix := "mz" + e.now(t).Status.ResourceID + "-"
	for _, kind := range rollout.OwnedKinds() {
		if kind.Kind == "Certificate" {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := e.List(t.Context(), list, client.InNamespace(e.namespace), client.HasLabels{v1alpha2.LabelResourceID}); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			all[kind.Kind+" "+object.GetName()[len(prefix):]] = object
		}
	}
	return all
}

func uids(all map[string]*unstructured.Unstructured) map[string]types.UID {
	found := map[string]types.UID{}
	for name, object := range all {
		found[name] = object.GetUID()
	}
	return found
}

// TestDriftDoesNotRollOut: no change of the objects of an environment starts a rollout.
func TestDriftDoesNotRollOut(t *testing.T) {
	t.Parallel()
	e := theWorld(t).deployed(t)
	t.Run("what somebody deletes comes back as it was", e.deleted)
	t.Run("what somebody changes is set right, and what others add is left alone", e.edited)
	t.Run("all goes with the environment", e.gone)
}

func (e *environment) edited(t *testing.T) {
	before := e.ownedObjects(t)
	change := func(name string, object client.Object, patch string) {
		t.Helper()
		object.SetNamespace(e.namespace)
		object.SetName(before[name].GetName())
		if err := e.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatalf("change %s: %v", name, err)
		}
	}
	change("Service environmentd", &corev1.Service{}, `{"metadata":{"annotations":{"theirs":"stays"}},"spec":{"selector":{"materialize.cloud/generation":"7"}}}`)
	change("Deployment balancerd", &appsv1.Deployment{}, `{"spec":{"replicas":7}}`)
	change("Role environmentd", &rbacv1.Role{}, `{"rules":[]}`)
	change("RoleBinding environmentd", &rbacv1.RoleBinding{}, `{"subjects":[]}`)
	change("StatefulSet environmentd-1", &appsv1.StatefulSet{}, `{"spec":{"replicas":0}}`)
	wait.Until(t, func(ctx context.Context) error {
		after := e.ownedObjects(t)
		for name, path := range map[string][]string{
			"Service environmentd":       {"spec", "selector"},
			"Deployment balancerd":       {"spec", "replicas"},
			"Role environmentd":          {"rules"},
			"RoleBinding environmentd":   {"subjects"},
			"StatefulSet environmentd-1": {"spec", "replicas"},
		} {
			want, _, _ := unstructured.NestedFieldNoCopy(before[name].Object, path...)
			got, _, _ := unstructured.NestedFieldNoCopy(after[name].Object, path...)
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("%s: %s", name, diff)
			}
		}
		if after["Service environmentd"].GetAnnotations()["theirs"] != "stays" {
			t.Error("what others have added is gone")
		}
		return nil
	})
	if diff := cmp.Diff(uids(before), uids(e.ownedObjects(t))); diff != "" {
		t.Errorf("something was made anew: %s", diff)
	}
	e.serves(t, 1, "v1")
}

func (e *environment) deleted(t *testing.T) {
	var before map[string]*unstructured.Unstructured
	wait.Until(t, func(context.Context) error {
		if before = e.ownedObjects(t); len(before) != 12 {
			return fmt.Errorf("there are %d objects: %v", len(before), uids(before))
		}
		return nil
	})
	m := e.now(t)
	for name, object := range before {
		if err := e.Delete(t.Context(), object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatalf("delete %s: %v", name, err)
		}
	}
	wait.Until(t, func(ctx context.Context) error {
		after := e.ownedObjects(t)
		for name, object := range before {
			now := after[name]
			if now == nil || now.GetUID() == object.GetUID() {
				return fmt.Errorf("%s has not come back", name)
			}
			if diff := cmp.Diff(object.GetAnnotations(), now.GetAnnotations()); name != "Deployment balancerd" && name != "Deployment console" && diff != "" {
				return fmt.Errorf("%s is another one: %s", name, diff)
			}
		}
		return nil
	})
	now := e.serves(t, 1, "v1")
	// For a moment, the operator may have said that it could not write a RoleBinding, whose Role was gone.
	now.Status.Conditions = m.Status.Conditions
	if diff := cmp.Diff(m.Status, now.Status); diff != "" {
		t.Errorf("the status has changed: %s", diff)
	}
}

func (e *environment) gone(t *testing.T) {
	all := e.ownedObjects(t)
	if err := e.Delete(t.Context(), e.materialize()); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, func(ctx context.Context) error {
		for name, object := range all {
			left := object.DeepCopy()
			if err := e.Get(ctx, client.ObjectKeyFromObject(object), left); err == nil {
				return fmt.Errorf("%s is still there", name)
			} else if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	})
}
