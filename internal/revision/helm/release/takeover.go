package release

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// isDuplicateField means that an object cannot be applied because somebody has put something of their own beside it, such
// as a port of the same name. What others own stays when we apply, and the two do not go together.
func isDuplicateField(err error) bool {
	return apierrors.IsInvalid(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueDuplicate)
}

// takeOver makes ours what others have written to an object, so that it goes when what is desired is applied. It tells
// whether there was anything to take.
func (m *Manager) takeOver(ctx context.Context, desired *unstructured.Unstructured) (bool, error) {
	live, err := m.get(ctx, desired)
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
