package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Work is what one cluster is to run. It lives in the namespace of the hub that stands for the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=wk,categories=karmada-io
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="WORKLOAD-KIND",type=string,JSONPath=".spec.workload.manifests[0].kind",description="Kind of what it runs."
// +kubebuilder:printcolumn:name="WORKLOAD-NAME",type=string,JSONPath=".spec.workload.manifests[0].metadata.name",description="Name of what it runs."
// +kubebuilder:printcolumn:name="APPLIED",type=string,JSONPath=".status.conditions[?(@.type==\"Applied\")].status",description="Whether the cluster runs it."
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=".status.conditions[?(@.type==\"Applied\")].reason",description="Why, or why not."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type Work struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the cluster is to run.
	// +required
	Spec WorkSpec `json:"spec"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status WorkStatus `json:"status,omitzero"`
}

// WorkSpec is what a cluster is to run.
type WorkSpec struct {
	// The objects.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitzero"`

	// Write nothing to the cluster for now.
	// +optional
	SuspendDispatching *bool `json:"suspendDispatching,omitempty"`

	// Leave what runs in the cluster alone, and unmarked, when this is deleted.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
}

// WorkloadTemplate is what a cluster is to run.
type WorkloadTemplate struct {
	// The objects, as they are to be applied.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is an object to be applied.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:EmbeddedResource
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// WorkStatus is what was last seen in the cluster.
type WorkStatus struct {
	// Applied: the objects in the cluster are as the manifests say.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Status of each object.
	// +optional
	ManifestStatuses []ManifestStatus `json:"manifestStatuses,omitempty"`
}

// ManifestStatus is the status of one object, and what was last written.
type ManifestStatus struct {
	// The object.
	// +required
	Identifier ResourceIdentifier `json:"identifier"`

	// Status of the object in the cluster.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Health of the object, by its status.
	// +optional
	Health string `json:"health,omitempty"`

	// Digest of the manifest that was last written to the cluster.
	// +optional
	WrittenManifest string `json:"writtenManifest,omitempty"`

	// Digest of the object after that write, with the defaults of the cluster. Another digest means drift.
	// +optional
	WrittenObject string `json:"writtenObject,omitempty"`

	// Its resourceVersion. Not set by Fairlead.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// ResourceIdentifier names an object of a Work.
type ResourceIdentifier struct {
	// Its place among the manifests.
	// +required
	Ordinal int `json:"ordinal"`
	// The group of its API.
	// +optional
	Group string `json:"group,omitempty"`
	// The version of its API.
	// +required
	Version string `json:"version"`
	// Its kind.
	// +required
	Kind string `json:"kind"`
	// The resource of its kind, as in paths of the API: deployments.
	// +required
	Resource string `json:"resource"`
	// Its namespace, if it is in one.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Its name.
	// +required
	Name string `json:"name"`
}

// ConditionApplied is the condition of a Work.
const ConditionApplied = "Applied"

// WorkList is a list of Works.
//
// +kubebuilder:object:root=true
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Work `json:"items"`
}
