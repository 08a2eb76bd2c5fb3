// Package grants lists what Istio's charts let istiod do. Whoever creates a role must hold all that it grants, so the
// operator holds it too, in a role of its own that nothing else in Fairlead relies on. A test holds the list against
// the roles of the charts.
package grants

// For sidecar injection and the validation of configuration.
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=get;list;watch;update
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch

// For Istio's configuration.
// +kubebuilder:rbac:groups=config.istio.io;security.istio.io;networking.istio.io;authentication.istio.io;rbac.istio.io;telemetry.istio.io;extensions.istio.io,resources=*,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.istio.io,resources=workloadentries;workloadentries/status;serviceentries/status,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=networking.istio.io,resources=gateways,verbs=create
// +kubebuilder:rbac:groups=security.istio.io,resources=authorizationpolicies/status,verbs=get;list;watch;create;update;patch;delete

// For the services of the mesh.
// +kubebuilder:rbac:groups="",resources=pods;nodes;namespaces;endpoints;replicationcontrollers,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services;services/status,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups=multicluster.x-k8s.io,resources=serviceexports,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=multicluster.x-k8s.io,resources=serviceimports,verbs=get;list;watch

// For ingress and gateways.
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;ingressclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses/status,verbs=*
// +kubebuilder:rbac:groups=gateway.networking.k8s.io;gateway.networking.x-k8s.io,resources=*,verbs=get;list;watch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=backendtlspolicies/status;gatewayclasses/status;gateways/status;grpcroutes/status;httproutes/status;listenersets/status;referencegrants/status;tcproutes/status;tlsroutes/status;udproutes/status,verbs=update;patch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=gatewayclasses,verbs=create;update;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.x-k8s.io,resources=xbackendtrafficpolicies/status,verbs=update;patch
// +kubebuilder:rbac:groups=networking.x-k8s.io,resources=gateways,verbs=get;list;watch
// +kubebuilder:rbac:groups=inference.networking.k8s.io,resources=inferencepools,verbs=get;list;watch
// +kubebuilder:rbac:groups=inference.networking.k8s.io,resources=inferencepools/status,verbs=update;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;update;patch;delete

// For certificates, tokens and leases.
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;update;patch;create
