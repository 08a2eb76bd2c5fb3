// Package serving lists what processes of `fairlead serve-mesh` are granted. They run under a ServiceAccount of their own, and
// write nothing but their reports. A test holds the list against what they do.
package serving

// The configuration of proxies is built from these.
// +kubebuilder:rbac:groups=kuma.io,resources=meshes;dataplanes;zoneingresses;meshservices;meshmultizoneservices;meshtimeouts;meshretries;meshcircuitbreakers;meshloadbalancingstrategies;meshhttproutes;meshtcproutes,verbs=list;watch
// +kubebuilder:rbac:groups=fairlead.dev,resources=meshconsumerslices,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=services;namespaces,verbs=list;watch

// What proxies have acknowledged.
// +kubebuilder:rbac:groups=fairlead.dev,resources=meshservingreports,verbs=create;patch;delete

// Who a proxy is, and who may read metrics.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
