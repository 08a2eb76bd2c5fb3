package work

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// restoredObject is an object as it was before, without our marks, and with what others have added since.
func restoredObject(earlier, live *unstructured.Unstructured, scaled bool) *unstructured.Unstructured {
	want := earlier.DeepCopy()
	if scaled {
		manifest.CopyField(want, live, "spec", "replicas")
	}
	ours := model.OwnedKeys(live)
	want.SetLabels(model.MergeKeys(earlier.GetLabels(), nil, model.MergeKeys(live.GetLabels(), append(ours.Labels, model.OwnershipLabels...))))
	want.SetAnnotations(model.MergeKeys(earlier.GetAnnotations(), nil, model.MergeKeys(live.GetAnnotations(), ours.Annotations)))
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
