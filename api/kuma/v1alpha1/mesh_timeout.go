package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MeshTimeout is how long proxies wait.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mt,categories=kuma
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="FOR",type=string,JSONPath=".spec.targetRef.kind",description="Which proxies it is for."
// +kubebuilder:printcolumn:name="NAME-OF-TARGET",type=string,JSONPath=".spec.targetRef.name",description="Name of what it is for."
// +kubebuilder:printcolumn:name="TO",type=string,JSONPath=".spec.to[*].targetRef.name",description="The destinations that it names."
// +kubebuilder:printcolumn:name="RESOLVED",type=string,JSONPath=".status.conditions[?(@.type==\"Resolved\")].status",description="Whether it refers to something."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type MeshTimeout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What it says, and of what.
	// +optional
	Spec MeshTimeoutSpec `json:"spec,omitzero"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status PolicyStatus `json:"status,omitzero"`
}

// MeshTimeoutList is a list of MeshTimeouts.
//
// +kubebuilder:object:root=true
type MeshTimeoutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MeshTimeout `json:"items"`
}

// MeshTimeoutSpec is what it says, and of what.
type MeshTimeoutSpec struct {
	// Which proxies it is for; without it, all of the mesh.
	// +optional
	TargetRef *TargetRef `json:"targetRef,omitempty"`

	// What it says of destinations.
	// +listType=atomic
	// +optional
	To []MeshTimeoutTo `json:"to,omitempty"`

	// What it says of clients. Kept as it is written.
	// +listType=atomic
	// +optional
	From []apiextensionsv1.JSON `json:"from,omitempty"`

	// What it says of all clients. Kept as it is written.
	// +listType=atomic
	// +optional
	Rules []apiextensionsv1.JSON `json:"rules,omitempty"`
}

// TopLevel is which proxies the policy is for.
func (p *MeshTimeout) TopLevel() *TargetRef { return p.Spec.TargetRef }

// Entries are what it says of destinations.
func (p *MeshTimeout) Entries() []Entry {
	return entriesOf(p.Spec.To, func(to *MeshTimeoutTo) (ToTargetRef, any) { return to.TargetRef, &to.Default })
}

// MeshTimeoutTo is what it says of a destination.
type MeshTimeoutTo struct {
	// The destination.
	// +required
	TargetRef ToTargetRef `json:"targetRef"`

	// What holds for it.
	// +optional
	Default MeshTimeoutConf `json:"default,omitzero"`
}

// MeshTimeoutConf is how long a proxy waits.
type MeshTimeoutConf struct {
	// For a connection to be made.
	// +optional
	ConnectionTimeout *Duration `json:"connectionTimeout,omitempty"`

	// While nothing is sent either way, before the connection is closed. 0s waits for ever.
	// +optional
	IdleTimeout *Duration `json:"idleTimeout,omitempty"`

	// In HTTP.
	// +optional
	HTTP *HTTPTimeouts `json:"http,omitempty"`
}

// HTTPTimeouts are how long a proxy waits in HTTP. 0s waits for ever.
type HTTPTimeouts struct {
	// For a whole response.
	// +optional
	RequestTimeout *Duration `json:"requestTimeout,omitempty"`

	// While nothing is sent either way on a stream.
	// +optional
	StreamIdleTimeout *Duration `json:"streamIdleTimeout,omitempty"`

	// For a stream to end.
	// +optional
	MaxStreamDuration *Duration `json:"maxStreamDuration,omitempty"`

	// Before a connection is drained and closed.
	// +optional
	MaxConnectionDuration *Duration `json:"maxConnectionDuration,omitempty"`

	// For the headers of a request.
	// +optional
	RequestHeadersTimeout *Duration `json:"requestHeadersTimeout,omitempty"`
}
