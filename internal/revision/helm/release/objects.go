package release

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// get reads an object or its metadata into live; nil if the object or its kind does not exist.
func get[T client.Object](ctx context.Context, m *Manager, object *unstructured.Unstructured, live T) (T, error) {
	var none T
	live.GetObjectKind().SetGroupVersionKind(object.GroupVersionKind())
	err := m.client.Get(ctx, client.ObjectKeyFromObject(object), live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return none, nil
	}
	if err != nil {
		return none, newObjectError("get", object, err)
	}
	return live, nil
}

// Live is an object as the API server has it; nil if there is none.
func (m *Manager) Live(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return get(ctx, m, object, &unstructured.Unstructured{})
}

// applyObject creates or updates an object, and keeps live fields that other clients must own.
func (m *Manager) applyObject(ctx context.Context, desired *unstructured.Unstructured) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var live *unstructured.Unstructured
		if hasForeignFields(desired) {
			var err error
			if live, err = m.Live(ctx, desired); err != nil {
				return err
			}
		}
		_, err := m.apply(ctx, withLiveFields(desired, live))
		return err
	})
}

// apply applies an object as given, and returns the result.
func (m *Manager) apply(ctx context.Context, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	applied, err := m.applyOnce(ctx, desired)
	if isDuplicateField(err) {
		if taken, failure := m.takeOver(ctx, desired); failure != nil {
			err = failure
		} else if taken {
			applied, err = m.applyOnce(ctx, desired)
		}
	}
	if err != nil {
		return nil, newObjectError("apply", desired, err)
	}
	return applied, nil
}

func (m *Manager) applyOnce(ctx context.Context, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	applied := desired.DeepCopy()
	return applied, m.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied),
		client.FieldOwner(v1.FieldOwner), client.ForceOwnership)
}

// remove deletes an object of a release, unless the object is to be kept or has another owner now.
func (m *Manager) remove(ctx context.Context, made *unstructured.Unstructured) error {
	if survivesUninstall(made) {
		return nil
	}
	live, err := get(ctx, m, made, &metav1.PartialObjectMetadata{})
	if err != nil || live == nil || hasKeepPolicy(live) {
		return err
	}
	if !isOwnedBy(live, made) {
		m.log.V(1).Info("kept an object that belongs to another owner", "object", describe(made), "holder", holder(live))
		return nil
	}
	err = m.client.Delete(ctx, live, client.Preconditions{UID: &live.UID},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) {
		return newObjectError("delete", made, err)
	}
	return nil
}

// isDuplicateField tells whether an object cannot be applied because another client has added a conflicting list item, such
// as a port of the same name. Server-side apply keeps the fields of other owners, and the two conflict.
func isDuplicateField(err error) bool {
	return apierrors.IsInvalid(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueDuplicate)
}

// takeOver makes Fairlead the manager of fields that other clients have updated, so that applying the desired object removes
// these fields. It tells whether there were any.
func (m *Manager) takeOver(ctx context.Context, desired *unstructured.Unstructured) (bool, error) {
	live, err := m.Live(ctx, desired)
	if err != nil || live == nil {
		return false, err
	}
	others := sets.New[string]()
	for _, entry := range live.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" {
			others.Insert(entry.Manager)
		}
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, others, v1.FieldOwner)
	if err != nil || patch == nil {
		return false, err
	}
	err = m.client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(v1.FieldOwner))
	return err == nil, err
}
