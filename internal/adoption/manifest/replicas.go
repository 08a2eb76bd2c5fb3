package manifest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Replicas are spec.replicas of a resource, -1 if it has no such field.
func Replicas(template *unstructured.Unstructured) int32 {
	if n, found, err := unstructured.NestedInt64(template.Object, "spec", "replicas"); err == nil && found {
		return int32(n)
	}
	return -1
}
