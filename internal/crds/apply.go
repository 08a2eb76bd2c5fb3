package crds

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// FieldOwner is the name under which CRDs are applied.
const FieldOwner = "fairlead/crds"

// apply writes the CRD as Fairlead wants it. The write holds only for what was
// looked at: if another installer with a newer schema was faster, it conflicts
// and is decided anew. Creation cannot be bound like that, which is one reason to
// look again after every write: the newer one of two then repairs.
func (in *installer) apply(ctx context.Context, live, want *apiextensionsv1.CustomResourceDefinition, outcome Outcome) (*apiextensionsv1.CustomResourceDefinition, error) {
	body, err := manifest(want)
	if err != nil {
		return nil, err
	}
	if outcome == TakenOver && want.Spec.Conversion == nil && live.Spec.Conversion != nil && live.Spec.Conversion.Webhook != nil {
		if live, err = in.retireWebhook(ctx, live, want); err != nil {
			return nil, err
		}
	}
	if live != nil {
		body["metadata"].(map[string]any)["resourceVersion"] = live.ResourceVersion
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode CRD %s: %w", want.Name, err)
	}
	force := true
	return in.crds.Patch(ctx, want.Name, types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: FieldOwner, Force: &force})
}

// retireWebhook takes the conversion away from a former owner, whose webhook
// does not know our versions. Applying cannot remove what another one set, hence
// a patch; the versions change in the same write, because the old ones may not do
// without the webhook.
func (in *installer) retireWebhook(ctx context.Context, live, want *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": live.ResourceVersion},
		"spec": map[string]any{
			"conversion": map[string]any{"strategy": apiextensionsv1.NoneConverter, "webhook": nil},
			"versions":   want.Spec.Versions,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the versions of CRD %s: %w", want.Name, err)
	}
	return in.crds.Patch(ctx, want.Name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: FieldOwner})
}

// changedMeanwhile tells that the CRD is no longer what it was when looked at.
func changedMeanwhile(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// manifest is the CRD as it is written down: without what the server adds.
func manifest(crd *apiextensionsv1.CustomResourceDefinition) (map[string]any, error) {
	raw, err := json.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("encode CRD %s: %w", crd.Name, err)
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, fmt.Errorf("encode CRD %s: %w", crd.Name, err)
	}
	delete(body, "status")
	unstructured.RemoveNestedField(body, "metadata", "creationTimestamp")
	return body, nil
}
