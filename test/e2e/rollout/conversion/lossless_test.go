package conversion_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestReadAsWritten: what a manifest of v1alpha1 says is read as it was written, so that no tool sees a difference, whatever
// is written through v1alpha2 meanwhile.
func TestReadAsWritten(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	for name, apply := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := written(older).withRole().with("requestRollout", firstRequest).with("inPlaceRollout", false).with("forcePromote", string(v1alpha2.NilUUID))
			e := w.deployed(t, apply, m)
			e.readsAsWritten(t, m)
			e.completes(t, firstRequest)
			e.appliesWithoutChange(t, apply, m)

			const role = "arn:aws:iam::123456789012:role/another"
			m = m.with("environmentdIamRoleArn", role)
			e.applied(t, apply, m)
			e.serves(t, 2, "v1")
			e.hasRole(t, role)
			e.readsAsWritten(t, m)

			m = m.with("requestRollout", secondRequest)
			e.applied(t, apply, m)
			e.serves(t, 2, "v1")
			e.readsAsWritten(t, m)
			e.completes(t, secondRequest)
			e.appliesWithoutChange(t, apply, m)

			if stored := e.now(t); stored.Annotations[v1alpha2.AnnotationV1alpha1] == "" {
				t.Errorf("v1alpha2 has no annotation of what v1alpha1 says: %v", stored.Annotations)
			}
			wait.Until(t, func(ctx context.Context) error {
				stored, err := e.get(ctx)
				if err != nil {
					return err
				}
				delete(stored.Annotations, v1alpha2.AnnotationV1alpha1)
				return e.Update(ctx, stored, client.FieldOwner("replacing"))
			})
			e.lacks(t, "requestRollout", "environmentdIamRoleArn")
			e.applied(t, apply, m)
			e.serves(t, 2, "v1")
			e.hasRole(t, role)
			e.readsAsWritten(t, m)
			e.appliesWithoutChange(t, apply, m)
			e.tells(t, slices.Concat(firstDeploy, starting(2), takingOver(2))...)
		})
	}
}

func (e *environment) applied(t testing.TB, apply way, m manifest) {
	t.Helper()
	if err := apply(t.Context(), e, m); err != nil {
		t.Fatal(err)
	}
}

// read is the object in a version of the API.
func (e *environment) read(t testing.TB, version string) *unstructured.Unstructured {
	t.Helper()
	object := manifest{version: version}.object(e.namespace)
	if err := e.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	return object
}

func (e *environment) readsAsWritten(t testing.TB, m manifest) {
	t.Helper()
	object := e.read(t, m.version)
	spec := object.Object["spec"].(map[string]any)
	for field, value := range m.spec {
		if diff := cmp.Diff(value, spec[field]); diff != "" {
			t.Errorf("%s is read otherwise than it was written: %s", field, diff)
		}
	}
}

// completes waits until v1alpha1 says that a request is completed.
func (e *environment) completes(t testing.TB, request string) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		got, _, _ := unstructured.NestedString(e.read(t, older).Object, "status", "lastCompletedRolloutRequest")
		if got != request {
			return fmt.Errorf("status.lastCompletedRolloutRequest is %q, want %s", got, request)
		}
		return nil
	})
}

func (e *environment) lacks(t testing.TB, fields ...string) {
	t.Helper()
	spec := e.read(t, older).Object["spec"].(map[string]any)
	for _, field := range fields {
		if value, found := spec[field]; found {
			t.Errorf("%s is %v", field, value)
		}
	}
}

// appliesWithoutChange applies a manifest once more, and expects that nothing is stored.
func (e *environment) appliesWithoutChange(t testing.TB, apply way, m manifest) {
	t.Helper()
	before := e.serves(t, e.now(t).Status.ActiveGeneration, "v1")
	e.applied(t, apply, m)
	if after := e.now(t); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("applied once more, it has changed: %s", cmp.Diff(before, after))
	}
}

// hasRole waits until the pods of environmentd get a role.
func (e *environment) hasRole(t testing.TB, role string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		m, err := e.get(ctx)
		if err != nil {
			return err
		}
		account := &corev1.ServiceAccount{}
		if err := e.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: "mz" + m.Status.ResourceID + "-environmentd"}, account); err != nil {
			return err
		}
		if got := account.Annotations[v1alpha2.AnnotationRoleArn]; got != role {
			return fmt.Errorf("the role is %q, want %q", got, role)
		}
		return nil
	})
}
