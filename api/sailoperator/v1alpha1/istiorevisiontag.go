package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// IstioRevisionTag is a stable name for a revision: namespaces and pods can use it in the label istio.io/rev.
// A tag called "default" also serves those labelled istio-injection=enabled.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=istiorevtag,categories=istio-io
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
	Spec v1.IstioRevisionTagSpec `json:"spec"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status v1.IstioRevisionTagStatus `json:"status,omitzero"`
}

// IstioRevisionTagList is a list of IstioRevisionTags.
//
// +kubebuilder:object:root=true
type IstioRevisionTagList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IstioRevisionTag `json:"items"`
}
