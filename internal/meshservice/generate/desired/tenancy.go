package desired

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// IsTrusted says whether only the mesh owner writes an object. A ZoneIngress counts only there, since it offers services of
// every namespace.
func IsTrusted(object metav1.Object, where ZoneInfo) bool {
	return where.IsUniversal() || object.GetNamespace() == where.SystemNamespace
}

// HasPrecedence says whether a service keeps an address or hostname that another one claims too: one of the mesh owner before one
// of a tenant, and then the older.
func HasPrecedence(service, over metav1.Object, where ZoneInfo) bool {
	if one, other := IsTrusted(service, where), IsTrusted(over, where); one != other {
		return one
	}
	return IsOlder(service, over)
}

// SelectorNamespace is the only namespace whose Dataplanes a MeshService may select, empty for all: a tenant could
// otherwise expose the instances of another.
func SelectorNamespace(service metav1.Object, where ZoneInfo) string {
	if IsTrusted(service, where) {
		return ""
	}
	return service.GetNamespace()
}

// InboundNamespace is the namespace of an inbound: the one in its tags, or that of its Dataplane.
func InboundNamespace(namespace string, tags map[string]string) string {
	if named := tags[kumav1alpha1.LabelKubernetesNamespace]; named != "" {
		return named
	}
	if _, named, _, kubernetes := model.ParseKubernetesTag(tags[kumav1alpha1.TagService]); kubernetes {
		return named
	}
	return namespace
}

// ForeignDataplanesText tells the mesh owner which Dataplanes of other namespaces a selector matches.
func ForeignDataplanesText(dataplanes []string, where ZoneInfo) string {
	return fmt.Sprintf("the selector also matches %d Dataplanes of other namespaces, such as %s, which are left out: %s",
		len(dataplanes), slices.Min(dataplanes), namespaceRemedy(where))
}

// ForeignInstancesText tells the owner of the MeshService the same, without naming objects of other tenants.
func ForeignInstancesText(where ZoneInfo) string {
	return "the selector also matches Dataplanes of other namespaces, which are left out: " + namespaceRemedy(where)
}

func namespaceRemedy(where ZoneInfo) string {
	return "select tags that only Dataplanes of its own namespace have, or move the MeshService to namespace " + where.SystemNamespace
}

// ProxyOf is the proxy of a Dataplane.
func ProxyOf(dataplane *kumav1alpha1.Dataplane, where ZoneInfo) model.ProxyID {
	id := model.ProxyID{Mesh: MeshOf(dataplane), Namespace: dataplane.Namespace, Name: dataplane.Name}
	if where.IsUniversal() {
		id.Namespace = ""
	}
	return id
}

// Serves says whether a MeshService selects a Dataplane, and whether that is healthy. Foreign says that the selector also
// matches it in another namespace, in which the MeshService may not select. The rules are those of the Dataplane's namespace.
func Serves(service *kumav1alpha1.MeshService, dataplane *kumav1alpha1.Dataplane, rules NamespaceRules, where ZoneInfo) (
	serves, healthy, foreign bool,
) {
	selector, confined := service.Spec.Selector, SelectorNamespace(service, where)
	if !IsTrusted(dataplane, where) && !rules.AllowsMesh(MeshOf(dataplane)) {
		return false, false, false
	}
	if MeshOf(service) != MeshOf(dataplane) || selector.DataplaneRef == nil && len(selector.DataplaneTags) == 0 ||
		selector.DataplaneRef != nil && (selector.DataplaneRef.Name != dataplane.Name || service.Namespace != dataplane.Namespace) {
		return false, false, false
	}
	for i := range dataplane.Spec.Networking.Inbound {
		inbound := &dataplane.Spec.Networking.Inbound[i]
		state := inbound.InForce()
		switch {
		case RefusedTag(dataplane, inbound.Tags, rules, where) != "" || state == kumav1alpha1.InboundIgnored || !model.MatchesAll(selector.DataplaneTags, inbound.Tags):
		case confined != "" && InboundNamespace(dataplane.Namespace, inbound.Tags) != confined:
			foreign = true
		default:
			serves, healthy = true, healthy || state == kumav1alpha1.InboundReady
		}
	}
	return serves, healthy, foreign
}
