package work

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// restoredObject is the original without the ownership labels, and with the labels and annotations that others have added since.
func restoredObject(original, live *unstructured.Unstructured, scaled bool) *unstructured.Unstructured {
	want := original.DeepCopy()
	if scaled {
		manifest.CopyField(want, live, "spec", "replicas")
	}
	ours := model.OwnedKeys(live)
	want.SetLabels(model.MergeKeys(original.GetLabels(), nil, model.MergeKeys(live.GetLabels(), append(ours.Labels, model.OwnershipLabels...))))
	want.SetAnnotations(model.MergeKeys(original.GetAnnotations(), nil, model.MergeKeys(live.GetAnnotations(), ours.Annotations)))
	manifest.CopyServerMetadata(want, live)
	if status, found := live.Object["status"]; found {
		want.Object["status"] = status
	}
	return want
}

// EqualForUsers tells whether two objects have the same content, but for the ownership labels and for what no user sets.
func EqualForUsers(a, b *unstructured.Unstructured) bool {
	return digestOf(userContent(a)) == digestOf(userContent(b))
}

func userContent(object *unstructured.Unstructured) map[string]any {
	content := map[string]any{"labels": model.MergeKeys(object.GetLabels(), model.OwnershipLabels), "annotations": object.GetAnnotations()}
	for field, value := range object.Object {
		if field != "metadata" && field != "status" {
			content[field] = value
		}
	}
	return content
}
