package meshservice

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/meshstatus"
)

// +kubebuilder:rbac:groups=kuma.io,resources=meshconsumerslices,verbs=list;delete

// moveSlices moves MeshConsumerSlices from the group kuma.io, in which the kind was for a while, to fairlead.dev. It is called
// before anything reads them. Most clusters never had the former kind.
func moveSlices(ctx context.Context, reader client.Reader, writer client.Writer) error {
	former := &unstructured.UnstructuredList{}
	former.SetGroupVersionKind(kumav1alpha1.GroupVersion.WithKind(fairleadv1alpha1.MeshConsumerSliceKind + "List"))
	if err := reader.List(ctx, former); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("list the MeshConsumerSlices of the group %s: %w", kumav1alpha1.GroupVersion.Group, err)
	}
	for i := range former.Items {
		old := &former.Items[i]
		moved := old.DeepCopy()
		moved.SetGroupVersionKind(fairleadv1alpha1.GroupVersion.WithKind(fairleadv1alpha1.MeshConsumerSliceKind))
		moved.Object["metadata"] = map[string]any{}
		moved.SetName(old.GetName())
		moved.SetLabels(old.GetLabels())
		// One that exists is newer.
		if err := writer.Create(ctx, moved, client.FieldOwner(meshstatus.Consumers)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("move MeshConsumerSlice %s to the group %s: %w", old.GetName(), fairleadv1alpha1.GroupVersion.Group, err)
		}
		if err := writer.Delete(ctx, old); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the moved MeshConsumerSlice %s of the group %s: %w", old.GetName(), kumav1alpha1.GroupVersion.Group, err)
		}
	}
	return nil
}
