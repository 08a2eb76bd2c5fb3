package kube

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ApplyStatus writes the part of a status that an owner has, by server-side apply. The write is conditional: an object that was
// changed or recreated since it was read is a conflict, for the API server checks no UID of a status.
func ApplyStatus[S any](ctx context.Context, c client.Client, kind schema.GroupVersionKind, object client.Object, status S, owner string) error {
	metadata := metav1ac.ObjectMeta().WithName(object.GetName()).WithResourceVersion(object.GetResourceVersion())
	if namespace := object.GetNamespace(); namespace != "" {
		metadata.WithNamespace(namespace)
	}
	err := c.Status().Apply(ctx, &statusConfiguration[S]{
		TypeMetaApplyConfiguration:   *metav1ac.TypeMeta().WithKind(kind.Kind).WithAPIVersion(kind.GroupVersion().String()),
		ObjectMetaApplyConfiguration: metadata, Status: status,
	}, client.FieldOwner(owner), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write the status of %s %s: %w", kind.Kind, strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"), err)
	}
	return nil
}

type statusConfiguration[S any] struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`
	Status                                 S `json:"status"`
}

func (*statusConfiguration[S]) IsApplyConfiguration() {}
