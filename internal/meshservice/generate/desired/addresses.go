package desired

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// BackingService is the name of the Service, in the same namespace, whose addresses a MeshService has. It is empty where
// VIPs are always allocated: in universal, and for other zones.
func BackingService(service *kumav1alpha1.MeshService, where ZoneInfo) string {
	if where.IsUniversal() || !IdentityOf(service, where).Local {
		return ""
	}
	if IsGenerated(service, where) {
		return metav1.GetControllerOf(service).Name
	}
	return service.Name
}

// KubernetesAddresses are the addresses that Kubernetes gives a MeshService: those of its Service or, if that is headless,
// of the named Dataplane; each is nil if missing. Otherwise a VIP is allocated.
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
