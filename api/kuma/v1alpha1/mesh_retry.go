package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MeshRetry is when proxies try again.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mr,categories=kuma
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="FOR",type=string,JSONPath=".spec.targetRef.kind",description="Which proxies it is for."
// +kubebuilder:printcolumn:name="NAME-OF-TARGET",type=string,JSONPath=".spec.targetRef.name",description="Name of what it is for."
// +kubebuilder:printcolumn:name="TO",type=string,JSONPath=".status.columns.to",description="The destinations that it names."
// +kubebuilder:printcolumn:name="RESOLVED",type=string,JSONPath=".status.conditions[?(@.type==\"Resolved\")].status",description="Whether it refers to something."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type MeshRetry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What it says, and of what.
	// +optional
	Spec MeshRetrySpec `json:"spec,omitzero"`

	PolicyReport `json:",inline"`
}

// MeshRetryList is a list of MeshRetrys.
//
// +kubebuilder:object:root=true
type MeshRetryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MeshRetry `json:"items"`
}

// MeshRetrySpec is what it says, and of what.
type MeshRetrySpec struct {
	PolicySpec  `json:",inline"`
	ClientRules `json:",inline"`

	// What it says of destinations.
	// +listType=atomic
	// +optional
	To []MeshRetryTo `json:"to,omitempty"`
}

func (p *MeshRetry) TopLevel() *TargetRef { return p.Spec.TargetRef }

func (p *MeshRetry) Entries() []Entry {
	return entriesOf(p.Spec.To, func(to *MeshRetryTo) (ToTargetRef, any) { return to.TargetRef, &to.Default })
}

// MeshRetryTo is what it says of a destination.
type MeshRetryTo struct {
	// The destination.
	// +required
	TargetRef ToTargetRef `json:"targetRef"`

	// What holds for it.
	// +optional
	Default MeshRetryConf `json:"default,omitzero"`
}

// MeshRetryConf is when a proxy tries again.
type MeshRetryConf struct {
	// In TCP.
	// +optional
	TCP *TCPRetry `json:"tcp,omitempty"`

	// In HTTP.
	// +optional
	HTTP *HTTPRetry `json:"http,omitempty"`

	// In gRPC.
	// +optional
	GRPC *GRPCRetry `json:"grpc,omitempty"`
}

// TCPRetry is when a proxy dials again.
type TCPRetry struct {
	// How often it dials at most.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxConnectAttempt *int32 `json:"maxConnectAttempt,omitempty"`
}

// HTTPRetry is when a proxy sends an HTTP request again.
//
// +kubebuilder:pruning:PreserveUnknownFields
type HTTPRetry struct {
	// How often it sends it again at most.
	// +kubebuilder:validation:Minimum=0
	// +optional
	NumRetries *int32 `json:"numRetries,omitempty"`

	// How long each try may take.
	// +optional
	PerTryTimeout *Duration `json:"perTryTimeout,omitempty"`

	// How long it waits before.
	// +optional
	BackOff *BackOff `json:"backOff,omitempty"`

	// What makes it do so: 5xx, GatewayError, Reset, Retriable4xx, ConnectFailure, EnvoyRatelimited, RefusedStream,
	// Http3PostConnectFailure, HttpMethodGet and the like, or a status code.
	// +listType=atomic
	// +optional
	RetryOn []string `json:"retryOn,omitempty"`

	// Responses with such headers are tried again. Kept as it is written.
	// +listType=atomic
	// +optional
	RetriableResponseHeaders []apiextensionsv1.JSON `json:"retriableResponseHeaders,omitempty"`

	// Only requests with such headers are tried again. Kept as it is written.
	// +listType=atomic
	// +optional
	RetriableRequestHeaders []apiextensionsv1.JSON `json:"retriableRequestHeaders,omitempty"`
}

// GRPCRetry is when a proxy makes a gRPC call again.
//
// +kubebuilder:pruning:PreserveUnknownFields
type GRPCRetry struct {
	// How often it makes it again at most.
	// +kubebuilder:validation:Minimum=0
	// +optional
	NumRetries *int32 `json:"numRetries,omitempty"`

	// How long each try may take.
	// +optional
	PerTryTimeout *Duration `json:"perTryTimeout,omitempty"`

	// How long it waits before.
	// +optional
	BackOff *BackOff `json:"backOff,omitempty"`

	// What makes it do so: Canceled, DeadlineExceeded, Internal, ResourceExhausted or Unavailable.
	// +listType=atomic
	// +optional
	RetryOn []string `json:"retryOn,omitempty"`
}

// BackOff is how long a proxy waits before it tries again.
type BackOff struct {
	// The first time; it grows from there.
	// +optional
	BaseInterval *Duration `json:"baseInterval,omitempty"`

	// At most.
	// +optional
	MaxInterval *Duration `json:"maxInterval,omitempty"`
}
