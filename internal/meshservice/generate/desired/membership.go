package desired

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// labelOrAnnotation is what users wrote under a name, as a label or as an annotation: Kuma takes both.
func labelOrAnnotation(object metav1.Object, name string) string {
	return cmp.Or(object.GetLabels()[name], object.GetAnnotations()[name])
}

func isOn(value string) bool  { return value == "enabled" || value == "true" || value == "yes" }
func isOff(value string) bool { return value == "disabled" || value == "false" || value == "no" }

// IsIgnored says whether the users keep an object out of the mesh.
func IsIgnored(object metav1.Object) bool {
	return isOn(labelOrAnnotation(object, kumav1alpha1.AnnotationIgnore))
}

// IsInjected says whether the pods of a namespace have proxies.
func IsInjected(namespace metav1.Object) bool {
	return isOn(labelOrAnnotation(namespace, kumav1alpha1.LabelSidecarInjection)) && !IsIgnored(namespace)
}

// MeshOfWorkload is the mesh of a pod or Service: its own word, or that of its namespace.
func MeshOfWorkload(object, namespace metav1.Object) string {
	return cmp.Or(MeshNamed(object), MeshNamed(namespace), kumav1alpha1.DefaultMesh)
}

// MeshNamed is the mesh that a pod or Service names itself, if any.
func MeshNamed(object metav1.Object) string { return labelOrAnnotation(object, kumav1alpha1.LabelMesh) }

// isKumaKey says whether a label is one of the mesh's own, which are never taken over from pods and Services.
func isKumaKey(label string) bool {
	return strings.HasPrefix(label, "kuma.io/") || strings.HasPrefix(label, "k8s.kuma.io/")
}

// inheritedLabels are the labels that a resource has from what it is made of.
func inheritedLabels(from map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range from {
		if !isKumaKey(name) {
			all[name] = value
		}
	}
	return all
}

// KumaAnnotations are those of a pod that matter here.
func KumaAnnotations(from map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range from {
		if isKumaKey(name) {
			all[name] = value
		}
	}
	return all
}
