package crds

import (
	"context"
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// FieldOwner is the name under which CRDs are applied.
const FieldOwner = "fairlead/crds"

// write writes the desired CRD, in an order in which no object is read or stored in a version without a conversion.
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
		// The conversion is patched at the next check: an applied one would be removed by the next apply.
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

// apply writes the desired CRD. If another installer with a newer schema has written since, the write conflicts and is decided
// anew. A creation cannot conflict like that, which is one reason to check again after every write: of two installers, the newer
// one then repairs the CRD.
func (in *installer) apply(ctx context.Context, live, want *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	body := manifest(want)
	if live != nil {
		body["metadata"].(map[string]any)["resourceVersion"] = live.ResourceVersion
	}
	force := true
	return in.crds.Patch(ctx, want.Name, types.ApplyPatchType, toJSON(body), metav1.PatchOptions{FieldManager: FieldOwner, Force: &force})
}

// convert patches the conversion together with the versions that depend on it: server-side apply cannot remove the fields of
// another owner. The schema version is written by the apply that follows, so that a crash in between is noticed.
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

// merge patches the CRD that was read. Another write since then is a conflict.
func (in *installer) merge(ctx context.Context, live *apiextensionsv1.CustomResourceDefinition, owner string, body map[string]any) (*apiextensionsv1.CustomResourceDefinition, error) {
	metadata, _ := body["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		body["metadata"] = metadata
	}
	metadata["resourceVersion"] = live.ResourceVersion
	return in.crds.Patch(ctx, live.Name, types.MergePatchType, toJSON(body), metav1.PatchOptions{FieldManager: owner})
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

// manifest is a CRD without the fields that the API server sets.
func manifest(crd *apiextensionsv1.CustomResourceDefinition) map[string]any {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	utilruntime.Must(err)
	delete(body, "status")
	unstructured.RemoveNestedField(body, "metadata", "creationTimestamp")
	return body
}

func toJSON(body map[string]any) []byte {
	text, err := json.Marshal(body)
	utilruntime.Must(err)
	return text
}
