package desired

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// BackingService is the Service, in the same namespace, whose addresses a MeshService has if it is there. It is empty where
// addresses are always of the range: in universal, and for what comes from other zones.
func BackingService(service *kumav1alpha1.MeshService, where ZoneInfo) string {
	if where.IsUniversal() || !IdentityOf(service, where).Local {
		return ""
	}
	if IsGenerated(service, where) {
		return metav1.GetControllerOf(service).Name
	}
	return service.Name
}

// KubernetesAddresses are those that Kubernetes itself gives to a MeshService: of the Service behind it or, if that is headless, of the
// one Dataplane that it names; either is nil if it is not there. What has none of its own is given one of the range.
func KubernetesAddresses(service *kumav1alpha1.MeshService, behind *corev1.Service, named *kumav1alpha1.Dataplane, where ZoneInfo) (addresses []string, own bool) {
	switch generated := IsGenerated(service, where); {
	case behind == nil:
		return nil, generated
	case !IsHeadless(behind):
		for _, address := range behind.Spec.ClusterIPs {
			if _, err := netip.ParseAddr(address); err == nil {
				addresses = append(addresses, address)
			}
		}
		return addresses, len(addresses) > 0 || generated
	case service.Spec.Selector.DataplaneRef == nil:
		return nil, false
	}
	if named != nil && named.Spec.Networking.Address != "" {
		addresses = []string{named.Spec.Networking.Address}
	}
	return addresses, true
}
