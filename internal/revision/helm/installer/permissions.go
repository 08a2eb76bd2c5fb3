package installer

// What the charts install is watched, compared, applied and removed.
// +kubebuilder:rbac:groups="",resources=configmaps;endpoints;serviceaccounts;services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles;clusterrolebindings;roles;rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations;validatingadmissionpolicies;validatingadmissionpolicybindings,verbs=get;list;watch;create;patch;delete

// Istio's CRDs are never deleted.
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=authorizationpolicies.security.istio.io;destinationrules.networking.istio.io;envoyfilters.networking.istio.io;gateways.networking.istio.io;peerauthentications.security.istio.io;proxyconfigs.networking.istio.io;requestauthentications.security.istio.io;serviceentries.networking.istio.io;sidecars.networking.istio.io;telemetries.telemetry.istio.io;trafficextensions.extensions.istio.io;virtualservices.networking.istio.io;wasmplugins.extensions.istio.io;workloadentries.networking.istio.io;workloadgroups.networking.istio.io,verbs=get;create;patch

// Helm keeps its records in Secrets.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;delete

// The metadata of pods and namespaces shows which revisions are in use.
// +kubebuilder:rbac:groups="",resources=namespaces;pods,verbs=list;watch
