package consumers

// +kubebuilder:rbac:groups=kuma.io,resources=meshes;dataplanes,verbs=list;watch
// +kubebuilder:rbac:groups=kuma.io,resources=meshes/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
