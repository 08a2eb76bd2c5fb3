package generate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Trusted says whether an object is where only the owner of the mesh writes. Only there a ZoneIngress counts, since it
// speaks for services of every namespace.
func Trusted(object metav1.Object, where Where) bool {
	return where.IsUniversal() || object.GetNamespace() == where.SystemNamespace
}

// Overreach is the tag by which an inbound of a Dataplane says that it serves another namespace, and that namespace. Such
// an inbound does not count, or a tenant could have the calls of another's service. The tag of one that counts is empty.
func Overreach(dataplane metav1.Object, tags map[string]string, where Where) (tag, namespace string) {
	if Trusted(dataplane, where) {
		return "", ""
	}
	_, namespace, _, kubernetes := model.ParseKubernetesTag(tags[kumav1alpha1.TagService])
	if kubernetes && namespace != dataplane.GetNamespace() {
		return kumav1alpha1.TagService, namespace
	}
	// The selectors of generated MeshServices name the namespace.
	namespace, written := tags[kumav1alpha1.LabelKubernetesNamespace]
	if written && namespace != dataplane.GetNamespace() {
		return kumav1alpha1.LabelKubernetesNamespace, namespace
	}
	return "", ""
}
