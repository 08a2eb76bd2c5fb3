package desired

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// IsTrusted says whether an object is where only the owner of the mesh writes. Only there a ZoneIngress counts, since it
// speaks for services of every namespace.
func IsTrusted(object metav1.Object, where ZoneInfo) bool {
	return where.IsUniversal() || object.GetNamespace() == where.SystemNamespace
}

// ForeignTag is the tag by which an inbound of a Dataplane says that it serves another namespace, and that namespace. Such
// an inbound does not count, or a tenant could have the calls of another's service. The tag of one that counts is empty.
func ForeignTag(dataplane metav1.Object, tags map[string]string, where ZoneInfo) (tag, namespace string) {
	if IsTrusted(dataplane, where) {
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

// SelectorNamespace is the namespace whose instances alone a MeshService may select, or a tenant could name the instances of another and
// give them a name of his own. It is empty for one that may select all.
func SelectorNamespace(service metav1.Object, where ZoneInfo) string {
	if IsTrusted(service, where) {
		return ""
	}
	return service.GetNamespace()
}

// InboundNamespace is the namespace that an inbound is of: that of its Dataplane, or the one that its tags name if they do not overreach.
func InboundNamespace(namespace string, tags map[string]string) string {
	if named := tags[kumav1alpha1.LabelKubernetesNamespace]; named != "" {
		return named
	}
	if _, named, _, kubernetes := model.ParseKubernetesTag(tags[kumav1alpha1.TagService]); kubernetes {
		return named
	}
	return namespace
}

// ForeignDataplanesText tells the owner of the mesh of Dataplanes that a MeshService has the tags of and may not select, and what to do.
func ForeignDataplanesText(dataplanes []string, where ZoneInfo) string {
	return fmt.Sprintf("the selector also matches %d Dataplanes of other namespaces, such as %s, which are left out: %s",
		len(dataplanes), slices.Min(dataplanes), namespaceRemedy(where))
}

// ForeignInstancesText tells the owner of such a MeshService the same, but not whose they are nor how many: that is no business of his.
func ForeignInstancesText(where ZoneInfo) string {
	return "the selector also matches Dataplanes of other namespaces, which are left out: " + namespaceRemedy(where)
}

func namespaceRemedy(where ZoneInfo) string {
	return "select tags that only Dataplanes of its own namespace have, or move the MeshService to namespace " + where.SystemNamespace
}
