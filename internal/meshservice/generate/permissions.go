package generate

// What the operator may do so that the mesh holds what runs.

// +kubebuilder:rbac:groups=kuma.io,resources=meshes;zoneingresses;meshmultizoneservices;hostnamegenerators;meshtimeouts;meshretries;meshcircuitbreakers;meshloadbalancingstrategies;meshhttproutes;meshtcproutes,verbs=get;list;watch
// +kubebuilder:rbac:groups=kuma.io,resources=dataplanes;meshservices,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=kuma.io,resources=meshes/status;meshservices/status;meshmultizoneservices/status;meshtimeouts/status;meshretries/status;meshcircuitbreakers/status;meshloadbalancingstrategies/status;meshhttproutes/status;meshtcproutes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services;pods;namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
