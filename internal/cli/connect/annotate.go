package connect

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldOwner is the field manager of what commands write.
const FieldOwner = "fairlead/cli"

func (c *Cluster) Annotate(ctx context.Context, r Resource, key string, value any) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(r.Mapping.GroupVersionKind)
	object.SetNamespace(r.Key.Namespace)
	object.SetName(r.Key.Name)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{key: value}},
	})
	if err != nil {
		return err
	}
	return c.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner))
}
