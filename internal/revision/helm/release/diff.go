package release

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/kube"
)

// Differs tells whether a live object differs from the desired one, and names the first such field. Fields that other clients
// must own do not count.
func Differs(desired, live *unstructured.Unstructured) (field string, differs bool) {
	field = kube.FirstDifference(mergeLiveFields(withoutStringData(desired), live), live)
	return field, field != ""
}

// withoutStringData puts the texts of a Secret where the API server puts them.
func withoutStringData(object *unstructured.Unstructured) *unstructured.Unstructured {
	texts, found, _ := unstructured.NestedStringMap(object.Object, "stringData")
	if !found || object.GetKind() != "Secret" || object.GetAPIVersion() != "v1" {
		return object
	}
	object = object.DeepCopy()
	delete(object.Object, "stringData")
	for key, text := range texts {
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		if err := unstructured.SetNestedField(object.Object, encoded, "data", key); err != nil {
			object.Object["data"] = map[string]any{key: encoded}
		}
	}
	return object
}
