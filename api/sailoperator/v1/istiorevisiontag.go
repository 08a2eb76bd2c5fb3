package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// IstioRevisionTag is a stable name for a revision: namespaces and pods can use it in the label istio.io/rev.
// A tag called "default" also serves those labelled istio-injection=enabled.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=istiorevtag,categories=istio-io
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.state",description="Healthy, or what is wrong."
// +kubebuilder:printcolumn:name="In use",type=string,JSONPath=".status.conditions[?(@.type==\"InUse\")].status",description="Whether a namespace or pod uses it."
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=".status.istioRevision",description="The revision it points to."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$')",optionalOldSelf=true,message="metadata.name must consist of at most 40 lower-case letters, digits and '-': it becomes part of the names of the tag's Service and Helm release"
type IstioRevisionTag struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the tag points to.
	// +required
	Spec IstioRevisionTagSpec `json:"spec"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status IstioRevisionTagStatus `json:"status,omitzero"`
}

// IstioRevisionTagSpec is where the tag should point.
type IstioRevisionTagSpec struct {
	// The Istio or IstioRevision that the tag stands for.
	// +required
	TargetRef TargetReference `json:"targetRef"`
}

// TargetReference names an Istio or an IstioRevision.
type TargetReference struct {
	// Istio, to follow its active revision, or IstioRevision, to stay on that one.
	// +kubebuilder:validation:Enum=Istio;IstioRevision
	// +required
	Kind string `json:"kind"`

	// Name of the Istio or IstioRevision.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// IstioRevisionTagStatus is what was last seen of the tag.
type IstioRevisionTagStatus struct {
	// Generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Reconciled: the tag's webhook points to the revision.
	// InUse: a namespace or pod uses the tag.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Healthy when reconciled and in use, otherwise the reason why not.
	// +optional
	State State `json:"state,omitempty"`

	// Namespace of the control plane that the tag points to.
	// +optional
	IstiodNamespace string `json:"istiodNamespace,omitempty"`

	// IstioRevision that the tag points to.
	// +optional
	IstioRevision string `json:"istioRevision,omitempty"`
}

// IstioRevisionTagList is a list of IstioRevisionTags.
//
// +kubebuilder:object:root=true
type IstioRevisionTagList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IstioRevisionTag `json:"items"`
}
