package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MeshTCPRoute is where proxies send connections.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=kuma
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="FOR",type=string,JSONPath=".spec.targetRef.kind",description="Which proxies it is for."
// +kubebuilder:printcolumn:name="NAME-OF-TARGET",type=string,JSONPath=".spec.targetRef.name",description="Name of what it is for."
// +kubebuilder:printcolumn:name="TO",type=string,JSONPath=".status.columns.to",description="The destinations that it names."
// +kubebuilder:printcolumn:name="RESOLVED",type=string,JSONPath=".status.conditions[?(@.type==\"Resolved\")].status",description="Whether it refers to something."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type MeshTCPRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What it says, and of what.
	// +optional
	Spec MeshTCPRouteSpec `json:"spec,omitzero"`

	PolicyReport `json:",inline"`
}

// MeshTCPRouteList is a list of MeshTCPRoutes.
//
// +kubebuilder:object:root=true
type MeshTCPRouteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MeshTCPRoute `json:"items"`
}

// MeshTCPRouteSpec is what it says, and of what.
type MeshTCPRouteSpec struct {
	PolicySpec `json:",inline"`

	// What it says of destinations.
	// +listType=atomic
	// +optional
	To []MeshTCPRouteTo `json:"to,omitempty"`
}

func (p *MeshTCPRoute) TopLevel() *TargetRef { return p.Spec.TargetRef }

func (p *MeshTCPRoute) Entries() []Entry {
	return entriesOf(p.Spec.To, func(to *MeshTCPRouteTo) (ToTargetRef, any) { return to.TargetRef, to })
}

// MeshTCPRouteTo is where connections to a destination go instead.
type MeshTCPRouteTo struct {
	// The destination.
	// +required
	TargetRef ToTargetRef `json:"targetRef"`

	// Where they go.
	// +kubebuilder:validation:MaxItems=1
	// +listType=atomic
	// +optional
	Rules []TCPRule `json:"rules,omitempty"`
}

// TCPRule is where connections go.
type TCPRule struct {
	// What becomes of them.
	// +optional
	Default TCPRuleDefault `json:"default,omitzero"`
}

// TCPRuleDefault is what becomes of connections.
type TCPRuleDefault struct {
	// Where they go; without it, to the destination.
	// +listType=atomic
	// +optional
	BackendRefs []BackendRef `json:"backendRefs,omitempty"`
}
