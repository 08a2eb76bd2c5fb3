package crds

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// FieldOwner is the name under which CRDs are applied.
const FieldOwner = "fairlead/crds"

// write brings the CRD to what was decided, in an order in which no object is ever
// read or stored in a version that it cannot be converted to.
func (in *installer) write(ctx context.Context, live, want *apiextensionsv1.CustomResourceDefinition, outcome Outcome, hold string) (*apiextensionsv1.CustomResourceDefinition, error) {
	var err error
	if hold != "" {
		return in.claim(ctx, live)
	}
	if want.Spec.Conversion == nil {
		if outcome == TakenOver && live.Spec.Conversion != nil && live.Spec.Conversion.Webhook != nil {
			if live, err = in.convert(ctx, live, want, noConversion()); err != nil {
				return nil, err
			}
		}
		return in.apply(ctx, live, want)
	}
	stated := want.DeepCopy()
	stated.Spec.Conversion = nil
	if live == nil {
		// It gets its conversion at the next look: if applied, that would be taken away by the next one who applies.
		serveStoredOnly(stated)
		return in.apply(ctx, nil, stated)
	}
	if !equality.Semantic.DeepEqual(live.Spec.Conversion, want.Spec.Conversion) {
		if live, err = in.convert(ctx, live, want, webhookConversion(want.Spec.Conversion)); err != nil {
			return nil, err
		}
	}
	if isUpToDate(live, want) {
		return live, nil
	}
	return in.apply(ctx, live, stated)
}

// apply writes the CRD as Fairlead wants it. The write holds only for what was
// looked at: if another installer with a newer schema was faster, it conflicts
// and is decided anew. Creation cannot be bound like that, which is one reason to
// look again after every write: the newer one of two then repairs.
func (in *installer) apply(ctx context.Context, live, want *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	body, err := manifest(want)
	if err != nil {
		return nil, err
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

// convert changes the conversion, and in the same write the versions that need it
// or cannot do with it. Applying cannot remove what another one set, hence a
// patch. It leaves the mark of the schema to what is applied after it, so that one
// who dies in between is known not to have finished.
func (in *installer) convert(ctx context.Context, live, want *apiextensionsv1.CustomResourceDefinition, conversion map[string]any) (*apiextensionsv1.CustomResourceDefinition, error) {
	return in.merge(ctx, live, conversionOwner, map[string]any{
		"spec": map[string]any{"conversion": conversion, "versions": want.Spec.Versions},
	})
}

// claim marks a CRD as Fairlead's that still has the schema of its former owner.
func (in *installer) claim(ctx context.Context, live *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	return in.merge(ctx, live, FieldOwner, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{SchemaVersionAnnotation: "0"}},
	})
}

// merge patches the CRD that was looked at, or conflicts.
func (in *installer) merge(ctx context.Context, live *apiextensionsv1.CustomResourceDefinition, owner string, body map[string]any) (*apiextensionsv1.CustomResourceDefinition, error) {
	metadata, _ := body["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		body["metadata"] = metadata
	}
	metadata["resourceVersion"] = live.ResourceVersion
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode a change of CRD %s: %w", live.Name, err)
	}
	return in.crds.Patch(ctx, live.Name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: owner})
}

func noConversion() map[string]any {
	return map[string]any{"strategy": apiextensionsv1.NoneConverter, "webhook": nil}
}

// webhookConversion is a conversion by webhook that removes all settings of another.
func webhookConversion(by *apiextensionsv1.CustomResourceConversion) map[string]any {
	config := clientConfigOf(by)
	return map[string]any{
		"strategy": apiextensionsv1.WebhookConverter,
		"webhook": map[string]any{
			"conversionReviewVersions": by.Webhook.ConversionReviewVersions,
			"clientConfig":             map[string]any{"service": config.Service, "url": config.URL, "caBundle": config.CABundle},
		},
	}
}

// isOutdated tells that the CRD has changed since it was read.
func isOutdated(err error) bool {
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
