package desired

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// written is what users wrote under a name, as a label or as an annotation: Kuma takes both.
func written(object metav1.Object, name string) string {
	return cmp.Or(object.GetLabels()[name], object.GetAnnotations()[name])
}

func isOn(value string) bool  { return value == "enabled" || value == "true" || value == "yes" }
func isOff(value string) bool { return value == "disabled" || value == "false" || value == "no" }

// Ignored says whether the users keep an object out of the mesh.
func Ignored(object metav1.Object) bool { return isOn(written(object, kumav1alpha1.AnnotationIgnore)) }

// Injected says whether the pods of a namespace have proxies.
func Injected(namespace metav1.Object) bool {
	return isOn(written(namespace, kumav1alpha1.LabelSidecarInjection)) && !Ignored(namespace)
}

// MeshOfWorkload is the mesh of a pod or Service: its own word, or that of its namespace.
func MeshOfWorkload(object, namespace metav1.Object) string {
	return cmp.Or(MeshNamed(object), MeshNamed(namespace), kumav1alpha1.DefaultMesh)
}

// MeshNamed is the mesh that a pod or Service names itself, if any.
func MeshNamed(object metav1.Object) string { return written(object, kumav1alpha1.LabelMesh) }

// ours says whether a label is one of the mesh's own, which are never taken over from pods and Services.
func ours(label string) bool {
	return strings.HasPrefix(label, "kuma.io/") || strings.HasPrefix(label, "k8s.kuma.io/")
}

// inherited are the labels that a resource has from what it is made of.
func inherited(from map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range from {
		if !ours(name) {
			all[name] = value
		}
	}
	return all
}

// OwnAnnotations are those of a pod that matter here.
func OwnAnnotations(from map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range from {
		if ours(name) {
			all[name] = value
		}
	}
	return all
}
