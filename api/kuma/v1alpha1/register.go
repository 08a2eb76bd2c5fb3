package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "kuma.io", Version: "v1alpha1"}

// The kinds of this group.
const (
	MeshKind                      = "Mesh"
	DataplaneKind                 = "Dataplane"
	ZoneIngressKind               = "ZoneIngress"
	MeshServiceKind               = "MeshService"
	MeshMultiZoneServiceKind      = "MeshMultiZoneService"
	HostnameGeneratorKind         = "HostnameGenerator"
	MeshTimeoutKind               = "MeshTimeout"
	MeshRetryKind                 = "MeshRetry"
	MeshCircuitBreakerKind        = "MeshCircuitBreaker"
	MeshLoadBalancingStrategyKind = "MeshLoadBalancingStrategy"
	MeshHTTPRouteKind             = "MeshHTTPRoute"
	MeshTCPRouteKind              = "MeshTCPRoute"
)

// AddToScheme makes a scheme know the types in this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Mesh{}, &MeshList{},
		&Dataplane{}, &DataplaneList{},
		&ZoneIngress{}, &ZoneIngressList{},
		&MeshService{}, &MeshServiceList{},
		&MeshMultiZoneService{}, &MeshMultiZoneServiceList{},
		&HostnameGenerator{}, &HostnameGeneratorList{},
		&MeshTimeout{}, &MeshTimeoutList{},
		&MeshRetry{}, &MeshRetryList{},
		&MeshCircuitBreaker{}, &MeshCircuitBreakerList{},
		&MeshLoadBalancingStrategy{}, &MeshLoadBalancingStrategyList{},
		&MeshHTTPRoute{}, &MeshHTTPRouteList{},
		&MeshTCPRoute{}, &MeshTCPRouteList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
