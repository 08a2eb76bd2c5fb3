package desired

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// labelOrAnnotation returns the value of a label or annotation: Kuma accepts both.
func labelOrAnnotation(object metav1.Object, name string) string {
	return cmp.Or(object.GetLabels()[name], object.GetAnnotations()[name])
}

func isOn(value string) bool  { return value == "enabled" || value == "true" || value == "yes" }
func isOff(value string) bool { return value == "disabled" || value == "false" || value == "no" }

// IsIgnored says whether users exclude an object from the mesh.
func IsIgnored(object metav1.Object) bool {
	return isOn(labelOrAnnotation(object, kumav1alpha1.AnnotationIgnore))
}

// IsInjected says whether the pods of a namespace have proxies.
func IsInjected(namespace metav1.Object) bool {
	return isOn(labelOrAnnotation(namespace, kumav1alpha1.LabelSidecarInjection)) && !IsIgnored(namespace)
}

// MeshOfWorkload returns the mesh of a pod or Service: its own, or that of its namespace.
func MeshOfWorkload(object, namespace metav1.Object) string {
	return cmp.Or(MeshNamed(object), MeshNamed(namespace), kumav1alpha1.DefaultMesh)
}

// MeshNamed returns the mesh in the label or annotation of an object, if any.
func MeshNamed(object metav1.Object) string { return labelOrAnnotation(object, kumav1alpha1.LabelMesh) }

// isKumaKey says whether a label or annotation is Kuma's; those are not inherited from pods and Services.
func isKumaKey(label string) bool {
	return strings.HasPrefix(label, "kuma.io/") || strings.HasPrefix(label, "k8s.kuma.io/")
}

// inheritedLabels returns the labels that a generated resource inherits.
func inheritedLabels(from map[string]string) map[string]string { return selectKeys(from, false) }

// KumaAnnotations returns Kuma's annotations of a pod.
func KumaAnnotations(from map[string]string) map[string]string { return selectKeys(from, true) }

func selectKeys(from map[string]string, kuma bool) map[string]string {
	all := map[string]string{}
	for name, value := range from {
		if isKumaKey(name) == kuma {
			all[name] = value
		}
	}
	return all
}
