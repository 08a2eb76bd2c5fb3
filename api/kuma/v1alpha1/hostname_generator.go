package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostnameGenerator gives services the names that clients call them by.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=hg,categories=kuma
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="TEMPLATE",type=string,JSONPath=".spec.template",description="What the names are made from."
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=".status.conditions[?(@.type==\"Addressed\")].reason",description="Whether names can be made from it."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type HostnameGenerator struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which services get a name, and which.
	// +required
	Spec HostnameGeneratorSpec `json:"spec"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status HostnameGeneratorStatus `json:"status,omitzero"`
}

// HostnameGeneratorList is a list of HostnameGenerators.
//
// +kubebuilder:object:root=true
type HostnameGeneratorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostnameGenerator `json:"items"`
}

// HostnameGeneratorSpec is which services get a name, and which.
type HostnameGeneratorSpec struct {
	// Which services get a name.
	// +optional
	Selector HostnameSelector `json:"selector,omitzero"`

	// What the name is made from: a Go template such as {{ .DisplayName }}.{{ .Namespace }}.mesh.local.
	// +kubebuilder:validation:MinLength=1
	// +required
	Template string `json:"template"`

	// Kept as it is written.
	// +optional
	Extension *apiextensionsv1.JSON `json:"extension,omitempty"`
}

// HostnameSelector is which services get a name: those of the kinds that are there.
type HostnameSelector struct {
	// MeshServices with these labels.
	// +optional
	MeshService *LabelMatch `json:"meshService,omitempty"`

	// MeshMultiZoneServices with these labels.
	// +optional
	MeshMultiZoneService *LabelMatch `json:"meshMultiZoneService,omitempty"`

	// MeshExternalServices with these labels. Kept as it is written.
	// +optional
	MeshExternalService *LabelMatch `json:"meshExternalService,omitempty"`
}

// HostnameGeneratorStatus is what was last seen of a HostnameGenerator.
type HostnameGeneratorStatus struct {
	// The generation of the HostnameGenerator that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Addressed: whether names can be made from its template.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
