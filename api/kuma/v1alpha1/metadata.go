package v1alpha1

// DefaultMesh is the mesh of resources that name none.
const DefaultMesh = "default"

// Labels of the resources in this group.
const (
	// LabelMesh names the mesh that a resource belongs to.
	LabelMesh = "kuma.io/mesh"
	// LabelDisplayName is the name of a resource in the zone that it comes from.
	LabelDisplayName = "kuma.io/display-name"
	// LabelNamespace is the namespace of a resource in the zone that it comes from.
	LabelNamespace = "kuma.io/namespace"
	// LabelKubernetesNamespace is LabelNamespace as Kuma itself writes it.
	LabelKubernetesNamespace = "k8s.kuma.io/namespace"
	// LabelZone names the zone that a resource comes from.
	LabelZone = "kuma.io/zone"
	// LabelOrigin tells whether a resource was made in this zone or synced into it.
	LabelOrigin = "kuma.io/origin"
	// LabelManagedBy names the controller that manages a resource.
	LabelManagedBy = "kuma.io/managed-by"
	// LabelSidecarInjection marks the namespaces whose pods have proxies.
	LabelSidecarInjection = "kuma.io/sidecar-injection"
)

// Values of the labels.
const (
	// ManagedBy is the value of LabelManagedBy on what Fairlead makes.
	ManagedBy = "fairlead"
	// InjectionEnabled is the value of LabelSidecarInjection that brings a namespace into the mesh.
	InjectionEnabled = "enabled"
	// OriginZone is the value of LabelOrigin on what this zone made.
	OriginZone = "zone"
)

// Tags of a Dataplane's inbounds.
const (
	// TagService is the old identity of a service.
	TagService = "kuma.io/service"
	// TagProtocol is what an inbound speaks.
	TagProtocol = "kuma.io/protocol"
	// TagZone is the zone of an inbound.
	TagZone = "kuma.io/zone"
)

// Annotations that users write on Services and pods.
const (
	// AnnotationIgnore keeps a Service out of the mesh.
	AnnotationIgnore = "kuma.io/ignore"
	// AnnotationReachableBackends lists, on a pod, the backends that it reaches.
	AnnotationReachableBackends = "kuma.io/reachable-backends"
	// AnnotationReachableServices lists, on a pod, the values of kuma.io/service that it reaches.
	AnnotationReachableServices = "kuma.io/transparent-proxying-reachable-services"
)

// Annotations of Fairlead's own.
const (
	// AnnotationMigrate is, on a Mesh, the intent to switch its consumers over.
	AnnotationMigrate = "fairlead.dev/migrate-consumers"
	// AnnotationConsumer names, on a generated Dataplane, the workload that it is part of, such as Deployment/cart.
	AnnotationConsumer = "fairlead.dev/consumer"
	// AnnotationZone is, on the ConfigMap of a mesh's tags, the zone whose proxies the operator serves.
	AnnotationZone = "fairlead.dev/zone"
	// AnnotationEnvironment is, beside it, whether services come from Services or from Dataplanes.
	AnnotationEnvironment = "fairlead.dev/environment"
	// AnnotationServiceCIDR is, beside them, the range of the VIPs of MeshServices.
	AnnotationServiceCIDR = "fairlead.dev/service-cidr"
	// AnnotationAllowedMeshes lists, on a Namespace, the Meshes that its objects may name beside that of the namespace; "*" allows all.
	AnnotationAllowedMeshes = "fairlead.dev/allowed-meshes"
	// AnnotationAllowedServices lists, on a Namespace, the values of kuma.io/service that its Dataplanes may have beside its own.
	AnnotationAllowedServices = "fairlead.dev/allowed-services"
	// AnnotationAllowedHostnames lists, on a Namespace, the hostnames that its services may have beside its own; "*.mesh.local" allows
	// all of a domain.
	AnnotationAllowedHostnames = "fairlead.dev/allowed-hostnames"
)

// Conditions of the resources in this group.
const (
	// ConditionGenerated tells whether the MeshServices of all Services or Dataplanes are generated.
	ConditionGenerated = "Generated"
	// ConditionPortsAgree tells whether all Dataplanes of a MeshService name the same ports.
	ConditionPortsAgree = "PortsAgree"
	// ConditionAddressed tells whether every hostname that a HostnameGenerator gives could be given.
	ConditionAddressed = "Addressed"
	// ConditionVIPs tells whether a service has the virtual addresses that it needs.
	ConditionVIPs = "VIPs"
	// ConditionResolved tells whether a policy refers to something that exists, and of a MeshService that its selector is met
	// by more than it may select.
	ConditionResolved = "Resolved"
	// ConditionConsumersSwitched tells whether the consumers of a Mesh are switched over.
	ConditionConsumersSwitched = "ConsumersSwitched"
	// ConditionServed tells whether the proxies of a Mesh are served over xDS.
	ConditionServed = "Served"
)

// Reasons of Generated.
const (
	ReasonGenerated = "Generated"
	ReasonDisabled  = "Disabled"
	// ReasonGenerating means that some MeshServices are not generated yet.
	ReasonGenerating = "Generating"
	// ReasonUnmanaged means that a resource with the name exists that Fairlead does not manage.
	ReasonUnmanaged = "Unmanaged"
	// ReasonInvalidName means that values of kuma.io/service are not valid as names of MeshServices, and get none.
	ReasonInvalidName = "InvalidName"
	// ReasonConsumersStranded means that mode Exclusive is held back, because it would leave consumers with nothing to reach.
	ReasonConsumersStranded = "ConsumersStranded"
)

// Reasons of PortsAgree.
const (
	ReasonPortsAgree   = "PortsAgree"
	ReasonPortConflict = "PortConflict"
)

// ReasonNotAllowed is the reason of the event on a Dataplane, pod or Service with a name that its namespace may not use.
const ReasonNotAllowed = "NotAllowed"

// Reasons of Addressed.
const (
	ReasonAddressed         = "Addressed"
	ReasonHostnameCollision = "HostnameCollision"
	ReasonBadTemplate       = "BadTemplate"
	// ReasonHostnameNotAllowed means that the namespace of the service may not have the hostname.
	ReasonHostnameNotAllowed = "HostnameNotAllowed"
)

// Reasons of VIPs.
const (
	ReasonAllocated      = "Allocated"
	ReasonRangeExhausted = "RangeExhausted"
	// ReasonShareExhausted means that a namespace has as many addresses as one may have.
	ReasonShareExhausted = "ShareExhausted"
)

// Reasons of Resolved.
const (
	ReasonResolved        = "Resolved"
	ReasonRefersToNothing = "RefersToNothing"
	// ReasonTooLarge means that entries of a policy are ignored since they exceed a limit.
	ReasonTooLarge        = "TooLarge"
	ReasonOtherNamespaces = "OtherNamespaces"
	// ReasonTruncated means that a list in the status has only the first of its items.
	ReasonTruncated = "Truncated"
)

// Reasons of ConsumersSwitched.
const (
	ReasonSwitching = "Switching"
	ReasonSwitched  = "Switched"
	ReasonReverting = "Reverting"
	ReasonReverted  = "Reverted"
	ReasonPaused    = "Paused"
	ReasonFailed    = "Failed"
	// ReasonInvalidIntent means that the annotation fairlead.dev/migrate-consumers is malformed.
	ReasonInvalidIntent = "InvalidIntent"
	// ReasonWithdrawn means that the annotation fairlead.dev/migrate-consumers was removed before the switch was completed.
	ReasonWithdrawn = "Withdrawn"
	// ReasonModeDisabled means that the mesh has no MeshServices to switch to.
	ReasonModeDisabled = "ModeDisabled"
	// ReasonModeReachesAll means that the mode gives MeshServices to every consumer.
	ReasonModeReachesAll = "ModeReachesAll"
	// ReasonModeNotInForce means that the requested mode is not in force yet.
	ReasonModeNotInForce = "ModeNotInForce"
	// ReasonNotGenerated means that not all MeshServices are generated.
	ReasonNotGenerated = "NotGenerated"
	// ReasonNoMeshServices means that the mesh has no MeshServices.
	ReasonNoMeshServices = "NoMeshServices"
	// ReasonProxiesNotConnected means that proxies of the consumers that are left are not connected.
	ReasonProxiesNotConnected = "ProxiesNotConnected"
	// ReasonConsumersAbsent means that consumers that fairlead.dev/migrate-consumers names have no proxies.
	ReasonConsumersAbsent = "ConsumersAbsent"
)

// Reasons of Served.
const (
	ReasonServed    = "Served"
	ReasonNotServed = "NotServed"
	// ReasonIncomplete means that a part of the configuration could not be built.
	ReasonIncomplete = "Incomplete"
	// ReasonMTLSNotServed means that the Mesh has mTLS enabled, which proxies are not configured for.
	ReasonMTLSNotServed = "MTLSNotServed"
	// ReasonNoStatusSubresource is the reason of the event on a Mesh whose CRD has no status subresource.
	ReasonNoStatusSubresource = "NoStatusSubresource"
)
