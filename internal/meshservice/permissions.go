package meshservice

// What the operator may do beyond what generate and consumers ask for themselves.

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=meshes.kuma.io;dataplanes.kuma.io;zoneingresses.kuma.io;meshservices.kuma.io;meshmultizoneservices.kuma.io;hostnamegenerators.kuma.io;meshtimeouts.kuma.io;meshretries.kuma.io;meshcircuitbreakers.kuma.io;meshloadbalancingstrategies.kuma.io;meshhttproutes.kuma.io;meshtcproutes.kuma.io,verbs=get;create;patch
// +kubebuilder:rbac:groups=kuma.io,resources=meshes,verbs=get;list;watch
// +kubebuilder:rbac:groups=kuma.io,resources=meshes/status,verbs=patch
