package release

import (
	"encoding/base64"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// kinds are those whose Go types are known.
var kinds = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(kinds))
	utilruntime.Must(apiextensionsv1.AddToScheme(kinds))
}

// canonical writes two objects in the same way, that of their Go type: half a CPU is 500m, what is empty is not there.
// Objects of unknown kinds, or that do not fit their type, stay as they are.
func canonical(desired, live *unstructured.Unstructured) (want, have map[string]any, of shape) {
	want, err := throughType(desired)
	if err != nil {
		return desired.Object, live.Object, nil
	}
	have, err = throughType(live)
	if err != nil {
		return desired.Object, live.Object, nil
	}
	// The type has just been made once, and is a struct.
	typed, _ := kinds.New(desired.GroupVersionKind())
	of, err = strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		of = nil
	}
	return want, have, of
}

func throughType(object *unstructured.Unstructured) (map[string]any, error) {
	typed, err := kinds.New(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
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
