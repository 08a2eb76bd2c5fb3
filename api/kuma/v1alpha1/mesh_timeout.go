package v1alpha1

import (
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
// +kubebuilder:printcolumn:name="TO",type=string,JSONPath=".status.columns.to",description="The destinations that it names."
// +kubebuilder:printcolumn:name="RESOLVED",type=string,JSONPath=".status.conditions[?(@.type==\"Resolved\")].status",description="Whether it refers to something."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type MeshTimeout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What it says, and of what.
	// +optional
	Spec MeshTimeoutSpec `json:"spec,omitzero"`

	PolicyReport `json:",inline"`
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
	PolicySpec  `json:",inline"`
	ClientRules `json:",inline"`

	// What it says of destinations.
	// +listType=atomic
	// +optional
	To []MeshTimeoutTo `json:"to,omitempty"`
}

func (p *MeshTimeout) TopLevel() *TargetRef { return p.Spec.TargetRef }

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
