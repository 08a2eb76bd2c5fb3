package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ApplyStatus writes the part of a status that an owner has, by server-side apply, and sets the resourceVersion of the object to
// that of the write. The write is conditional: an object that was changed or recreated since it was read is a conflict, for the
// API server checks no UID of a status.
func ApplyStatus[S any](ctx context.Context, c client.Client, kind schema.GroupVersionKind, object client.Object, status S, owner string) error {
	_, err := applyStatus(ctx, c, kind, object, status, owner)
	return err
}

// ApplyStatusPart is ApplyStatus for statuses that earlier versions wrote with merge patches. Whole is the status as it has to
// read afterwards, with the parts of other owners as they were read. Server-side apply keeps a field that is no longer part of
// the status while a patch of an earlier version, or a restored backup, is recorded as its manager too. Such a field is removed
// by a patch, because managedFields cannot be changed through the status subresource.
func ApplyStatusPart[S any](ctx context.Context, c client.Client, kind schema.GroupVersionKind, object client.Object, part, whole S, owner string) error {
	live, err := applyStatus(ctx, c, kind, object, part, owner)
	if apierrors.IsInvalid(err) {
		// Of a list item, the API server kept the key, which another manager has, and removed required fields.
		live, err = statusOf(object)
	}
	if err != nil {
		return err
	}
	patch, err := removeLeftovers(live, whole)
	if err != nil || patch == nil {
		return err
	}
	now := object.DeepCopyObject().(client.Object)
	if err := c.Status().Patch(ctx, now, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(owner)); err != nil {
		return statusError(kind, object, err)
	}
	object.SetResourceVersion(now.GetResourceVersion())
	return nil
}

// statusOf is the status of an object as it was read.
func statusOf(object client.Object) (*statusConfiguration, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	live := &statusConfiguration{}
	return live, json.Unmarshal(raw, live)
}

// removeLeftovers is the merge patch from a live status to the desired one, or nil if they are equal.
func removeLeftovers[S any](live *statusConfiguration, want S) ([]byte, error) {
	// The type drops the fields of a newer version.
	var known S
	if err := json.Unmarshal(live.Status, &known); err != nil {
		return nil, err
	}
	before, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, before)
	if err != nil || string(patch) == "{}" {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": live.ResourceVersion}, "status": json.RawMessage(patch),
	})
}

func applyStatus(ctx context.Context, c client.Client, kind schema.GroupVersionKind, object client.Object, status any, owner string) (*statusConfiguration, error) {
	metadata := metav1ac.ObjectMeta().WithName(object.GetName()).WithResourceVersion(object.GetResourceVersion())
	if namespace := object.GetNamespace(); namespace != "" {
		metadata.WithNamespace(namespace)
	}
	raw, err := json.Marshal(status)
	if err != nil {
		return nil, statusError(kind, object, err)
	}
	configuration := &statusConfiguration{
		TypeMetaApplyConfiguration:   *metav1ac.TypeMeta().WithKind(kind.Kind).WithAPIVersion(kind.GroupVersion().String()),
		ObjectMetaApplyConfiguration: metadata, Status: raw,
	}
	if err := c.Status().Apply(ctx, configuration, client.FieldOwner(owner), client.ForceOwnership); err != nil {
		return nil, statusError(kind, object, err)
	}
	object.SetResourceVersion(*configuration.ResourceVersion)
	return configuration, nil
}

func statusError(kind schema.GroupVersionKind, object client.Object, err error) error {
	return fmt.Errorf("write the status of %s %s: %w", kind.Kind, strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"), err)
}

// statusConfiguration is what is applied, and afterwards the object as the API server returned it. The status is encoded, so that
// the response is not decoded into the caller's status.
type statusConfiguration struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`
	Status                                 json.RawMessage `json:"status"`
}

func (*statusConfiguration) IsApplyConfiguration() {}
