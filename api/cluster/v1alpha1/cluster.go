package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

	// Push: the hub connects to the cluster.
	// +kubebuilder:validation:Enum=Push
	// +kubebuilder:default=Push
	// +optional
	SyncMode string `json:"syncMode,omitempty"`

	// URL of its API server.
	// +kubebuilder:validation:Pattern=`^https://`
	// +required
	APIEndpoint string `json:"apiEndpoint"`

	// Secret with the token, and the certificate authority, to reach it with.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
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

	// Ready: it can be reached, and its token is good.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionReady is the condition of a Cluster.
const ConditionReady = "Ready"

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}
