package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// MeshConsumerSlice records some of the consumers of a Mesh that are switched over to MeshServices, or are to be. All slices
// of a Mesh together are the record. They have no owner: the Mesh may be deleted and created again, as `kubectl replace --force`
// does, and its consumers stay switched. Written by Fairlead only.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="MESH",type=string,JSONPath=".mesh",description="The Mesh of the consumers."
// +kubebuilder:printcolumn:name="FIRST-CONSUMER",type=string,JSONPath=".consumers[*].name",description="The first consumer."
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=".consumers[*].state",description="What became of the first consumer."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type MeshConsumerSlice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Name of the Mesh.
	// +required
	// +kubebuilder:validation:MinLength=1
	Mesh string `json:"mesh"`

	// Identity of the intent that these consumers follow.
	// +optional
	Intent string `json:"intent,omitempty"`

	// Value of the annotation fairlead.dev/retry that these consumers followed last.
	// +optional
	Retry string `json:"retry,omitempty"`

	// The consumers go back instead.
	// +optional
	Revert bool `json:"revert,omitempty"`

	// How many consumers of the Mesh are switched at a time.
	// +optional
	BatchSize int32 `json:"batchSize,omitempty"`

	// How long to wait between two batches, in seconds.
	// +optional
	DelaySeconds int32 `json:"delaySeconds,omitempty"`

	// The consumers, and what became of each.
	// +listType=map
	// +listMapKey=name
	// +optional
	Consumers []kumav1alpha1.MigratedConsumer `json:"consumers,omitempty"`
}

// MeshConsumerSliceList is a list of MeshConsumerSlices.
//
// +kubebuilder:object:root=true
type MeshConsumerSliceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MeshConsumerSlice `json:"items"`
}
