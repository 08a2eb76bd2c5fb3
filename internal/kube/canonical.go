package kube

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// goTypes are the kinds whose Go types are known.
var goTypes = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(goTypes))
	utilruntime.Must(apiextensionsv1.AddToScheme(goTypes))
}

// canonical writes two objects as their Go type does: half a CPU is 500m, and empty fields are left out. Objects of
// unknown kinds, or that do not fit their type, stay as they are.
func canonical(desired, live *unstructured.Unstructured) (want, have map[string]any, of fieldTypes) {
	want, of, err := throughType(desired)
	if err == nil {
		have, _, err = throughType(live)
	}
	if err != nil {
		return desired.Object, live.Object, nil
	}
	return want, have, of
}

func throughType(object *unstructured.Unstructured) (map[string]any, fieldTypes, error) {
	typed, err := goTypes.New(object.GroupVersionKind())
	if err != nil {
		return nil, nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, nil, err
	}
	of, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	return content, of, err
}
