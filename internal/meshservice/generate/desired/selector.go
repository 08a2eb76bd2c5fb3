package desired

import (
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// ProxyOf is the proxy of a Dataplane.
func ProxyOf(dataplane *kumav1alpha1.Dataplane, where ZoneInfo) model.ProxyID {
	id := model.ProxyID{Mesh: MeshOf(dataplane), Namespace: dataplane.Namespace, Name: dataplane.Name}
	if where.IsUniversal() {
		id.Namespace = ""
	}
	return id
}

// Serves says whether a MeshService selects a Dataplane, and whether that is healthy.
func Serves(service *kumav1alpha1.MeshService, dataplane *kumav1alpha1.Dataplane, where ZoneInfo) (serves, healthy bool) {
	confined := SelectorNamespace(service, where)
	return selects(service, dataplane, where, func(home string) bool { return confined == "" || home == confined })
}

// SelectsForeign says whether the selector of a MeshService matches a Dataplane of another namespace, which it may not
// select.
func SelectsForeign(service *kumav1alpha1.MeshService, dataplane *kumav1alpha1.Dataplane, where ZoneInfo) bool {
	confined := SelectorNamespace(service, where)
	foreign, _ := selects(service, dataplane, where, func(home string) bool { return confined != "" && home != confined })
	return foreign
}

func selects(service *kumav1alpha1.MeshService, dataplane *kumav1alpha1.Dataplane, where ZoneInfo, of func(home string) bool) (serves, healthy bool) {
	if MeshOf(service) != MeshOf(dataplane) {
		return false, false
	}
	selector := service.Spec.Selector
	if selector.DataplaneRef != nil && (selector.DataplaneRef.Name != dataplane.Name || service.Namespace != dataplane.Namespace) ||
		selector.DataplaneRef == nil && len(selector.DataplaneTags) == 0 {
		return false, false
	}
	for i := range dataplane.Spec.Networking.Inbound {
		inbound := &dataplane.Spec.Networking.Inbound[i]
		state := inbound.InForce()
		claims, _ := ForeignTag(dataplane, inbound.Tags, where)
		if claims != "" || state == kumav1alpha1.InboundIgnored || !model.MatchesAll(selector.DataplaneTags, inbound.Tags) || !of(InboundNamespace(dataplane.Namespace, inbound.Tags)) {
			continue
		}
		serves, healthy = true, healthy || state == kumav1alpha1.InboundReady
	}
	return serves, healthy
}
