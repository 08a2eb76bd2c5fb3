package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is one that has joined the hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=karmada-io
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="VERSION",type=string,JSONPath=".status.kubernetesVersion",description="Version of its Kubernetes."
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=".spec.syncMode",description="Who connects to whom."
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether it can be reached."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has been a member."
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// How to reach it.
	// +required
	Spec ClusterSpec `json:"spec"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status ClusterStatus `json:"status,omitzero"`
}

// ClusterSpec is how to reach a cluster.
type ClusterSpec struct {
	// What tells the cluster from all others: the UID of its namespace kube-system.
	// +optional
	ID string `json:"id,omitempty"`

	// Push: the hub connects to the cluster. Pull, where the cluster connects to the hub, is not supported.
	// +kubebuilder:validation:Enum=Push;Pull
	// +kubebuilder:default=Push
	// +optional
	SyncMode ClusterSyncMode `json:"syncMode,omitempty"`

	// URL of its API server, or its host and port. Only HTTPS is used.
	// +kubebuilder:validation:Pattern=`^(https://|[^/]*$)`
	// +optional
	APIEndpoint string `json:"apiEndpoint,omitempty"`

	// Secret with the token, and the certificate authority, to reach it with.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// Secret with a token to impersonate users with. Kept as it is written: Fairlead passes no requests of users on to clusters.
	// +optional
	ImpersonatorSecretRef *LocalSecretReference `json:"impersonatorSecretRef,omitempty"`

	// Connect without checking the certificate of the API server. Not supported.
	// +optional
	InsecureSkipTLSVerification bool `json:"insecureSkipTLSVerification,omitempty"`

	// Proxy that the hub connects through. Not supported.
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`

	// Headers that the proxy gets. Not supported.
	// +optional
	ProxyHeader map[string]string `json:"proxyHeader,omitempty"`

	// Who runs the cluster. Policies can select clusters by it, and spread resources over it.
	// +optional
	Provider string `json:"provider,omitempty"`

	// Where the cluster is. Policies can select clusters by it, and spread resources over it.
	// +optional
	Region string `json:"region,omitempty"`

	// The former way to write one of zones. Both count.
	// +optional
	Zone string `json:"zone,omitempty"`

	// The zones of the region that the cluster is in. Policies can select clusters by them, and spread resources over them.
	// +optional
	Zones []string `json:"zones,omitempty"`

	// Taints keep resources away from the cluster whose policies do not tolerate them.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// Grades of nodes. Kept as they are written: Fairlead does not need them.
	// +optional
	ResourceModels []ResourceModel `json:"resourceModels,omitempty"`
}

// ClusterSyncMode is who connects to whom.
type ClusterSyncMode string

// The modes.
const (
	// SyncPush has the hub connect to the cluster.
	SyncPush ClusterSyncMode = "Push"
	// SyncPull has the cluster connect to the hub.
	SyncPull ClusterSyncMode = "Pull"
)

// ResourceModel is a grade of nodes.
type ResourceModel struct {
	// Number of the grade.
	// +required
	Grade uint `json:"grade"`

	// The resources of a node of this grade.
	// +required
	Ranges []ResourceModelRange `json:"ranges"`
}

// ResourceModelRange is how much of a resource a node of a grade has.
type ResourceModelRange struct {
	// Name of the resource.
	// +required
	Name corev1.ResourceName `json:"name"`

	// At least so much.
	// +required
	Min resource.Quantity `json:"min"`

	// Less than so much.
	// +required
	Max resource.Quantity `json:"max"`
}

// LocalSecretReference names a Secret.
type LocalSecretReference struct {
	// Its namespace, if it is in one.
	// +required
	Namespace string `json:"namespace"`
	// Its name.
	// +required
	Name string `json:"name"`
}

// ClusterStatus is what was last seen of a cluster.
type ClusterStatus struct {
	// Generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Version of its Kubernetes.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// Ready: it can be reached, and its token is good. Synced: all objects that are managed in it have been compared with their
	// Works since it can be reached. ResourcesReported: its nodes and pods can be read; it is there while a policy divides replicas by
	// the room of clusters.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// The kinds that its API server has. Not set by Fairlead.
	// +optional
	APIEnablements []APIEnablement `json:"apiEnablements,omitempty"`

	// How many nodes it has. Reported while a policy divides replicas by the room of clusters.
	// +optional
	NodeSummary *NodeSummary `json:"nodeSummary,omitempty"`

	// What its nodes have room for. Reported while a policy divides replicas by the room of clusters.
	// +optional
	ResourceSummary *ResourceSummary `json:"resourceSummary,omitempty"`

	// What is to be done about it. Not set by Fairlead.
	// +optional
	RemedyActions []string `json:"remedyActions,omitempty"`
}

// APIEnablement is the kinds of a group and version.
type APIEnablement struct {
	// The group and version.
	// +required
	GroupVersion string `json:"groupVersion"`

	// Its kinds.
	// +optional
	Resources []APIResource `json:"resources,omitempty"`
}

// APIResource is a kind.
type APIResource struct {
	// The plural name.
	// +required
	Name string `json:"name"`

	// The kind.
	// +required
	Kind string `json:"kind"`
}

// NodeSummary is how many nodes a cluster has.
type NodeSummary struct {
	// All of them.
	// +optional
	TotalNum int32 `json:"totalNum,omitempty"`

	// Those that are ready.
	// +optional
	ReadyNum int32 `json:"readyNum,omitempty"`
}

// ResourceSummary is what the nodes of a cluster have room for.
type ResourceSummary struct {
	// What all nodes have for pods.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// What pods need that are not on a node yet.
	// +optional
	Allocating corev1.ResourceList `json:"allocating,omitempty"`

	// What the pods on nodes need.
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`

	// Nodes by grade. Not set by Fairlead.
	// +optional
	AllocatableModelings []AllocatableModeling `json:"allocatableModelings,omitempty"`
}

// AllocatableModeling is how many nodes of a grade there are.
type AllocatableModeling struct {
	// Number of the grade.
	// +required
	Grade uint `json:"grade"`

	// How many nodes.
	// +required
	Count int `json:"count"`
}

// The conditions of a Cluster.
const (
	ConditionReady  = "Ready"
	ConditionSynced = "Synced"
	// ConditionResourcesReported tells whether the hub can read the nodes and pods of the cluster. It is there while a policy divides
	// replicas by the room of clusters.
	ConditionResourcesReported = "ResourcesReported"
)

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}
