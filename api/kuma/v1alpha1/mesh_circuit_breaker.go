package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MeshCircuitBreaker is when proxies leave a destination alone.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mcb,categories=kuma
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="FOR",type=string,JSONPath=".spec.targetRef.kind",description="Which proxies it is for."
// +kubebuilder:printcolumn:name="NAME-OF-TARGET",type=string,JSONPath=".spec.targetRef.name",description="Name of what it is for."
// +kubebuilder:printcolumn:name="TO",type=string,JSONPath=".status.columns.to",description="The destinations that it names."
// +kubebuilder:printcolumn:name="RESOLVED",type=string,JSONPath=".status.conditions[?(@.type==\"Resolved\")].status",description="Whether it refers to something."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type MeshCircuitBreaker struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What it says, and of what.
	// +optional
	Spec MeshCircuitBreakerSpec `json:"spec,omitzero"`

	PolicyReport `json:",inline"`
}

// MeshCircuitBreakerList is a list of MeshCircuitBreakers.
//
// +kubebuilder:object:root=true
type MeshCircuitBreakerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MeshCircuitBreaker `json:"items"`
}

// MeshCircuitBreakerSpec is what it says, and of what.
type MeshCircuitBreakerSpec struct {
	PolicySpec  `json:",inline"`
	ClientRules `json:",inline"`

	// What it says of destinations.
	// +listType=atomic
	// +optional
	To []MeshCircuitBreakerTo `json:"to,omitempty"`
}

func (p *MeshCircuitBreaker) TopLevel() *TargetRef { return p.Spec.TargetRef }

func (p *MeshCircuitBreaker) Entries() []Entry {
	return entriesOf(p.Spec.To, func(to *MeshCircuitBreakerTo) (ToTargetRef, any) { return to.TargetRef, &to.Default })
}

// MeshCircuitBreakerTo is what it says of a destination.
type MeshCircuitBreakerTo struct {
	// The destination.
	// +required
	TargetRef ToTargetRef `json:"targetRef"`

	// What holds for it.
	// +optional
	Default MeshCircuitBreakerConf `json:"default,omitzero"`
}

// MeshCircuitBreakerConf is when a proxy leaves a destination alone.
type MeshCircuitBreakerConf struct {
	// How much it asks of a destination at once.
	// +optional
	ConnectionLimits *ConnectionLimits `json:"connectionLimits,omitempty"`

	// Which instances it leaves alone for a while.
	// +optional
	OutlierDetection *OutlierDetection `json:"outlierDetection,omitempty"`
}

// ConnectionLimits are how much a proxy asks of a destination at once.
type ConnectionLimits struct {
	// Connections.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxConnections *int32 `json:"maxConnections,omitempty"`

	// Pools of connections.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxConnectionPools *int32 `json:"maxConnectionPools,omitempty"`

	// Requests that wait for a connection.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxPendingRequests *int32 `json:"maxPendingRequests,omitempty"`

	// Requests that are tried again.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxRetries *int32 `json:"maxRetries,omitempty"`

	// Requests.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxRequests *int32 `json:"maxRequests,omitempty"`
}

// OutlierDetection is which instances a proxy leaves alone for a while.
//
// +kubebuilder:pruning:PreserveUnknownFields
type OutlierDetection struct {
	// Leave none alone.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`

	// How often it looks.
	// +optional
	Interval *Duration `json:"interval,omitempty"`

	// For how long, the first time; it grows from there.
	// +optional
	BaseEjectionTime *Duration `json:"baseEjectionTime,omitempty"`

	// How many of the instances at most, in percent.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxEjectionPercent *int32 `json:"maxEjectionPercent,omitempty"`

	// Count the errors of the network apart from those of the instance.
	// +optional
	SplitExternalAndLocalErrors *bool `json:"splitExternalAndLocalErrors,omitempty"`

	// What it looks at.
	// +optional
	Detectors *Detectors `json:"detectors,omitempty"`
}

// Detectors are what outlier detection looks at.
type Detectors struct {
	// Errors of any kind in a row.
	// +optional
	TotalFailures *ConsecutiveFailures `json:"totalFailures,omitempty"`

	// Gateway errors in a row.
	// +optional
	GatewayFailures *ConsecutiveFailures `json:"gatewayFailures,omitempty"`

	// Errors of the network in a row.
	// +optional
	LocalOriginFailures *ConsecutiveFailures `json:"localOriginFailures,omitempty"`

	// A rate of success far below that of the others.
	// +optional
	SuccessRate *SuccessRate `json:"successRate,omitempty"`

	// A share of failures above a limit.
	// +optional
	FailurePercentage *FailurePercentage `json:"failurePercentage,omitempty"`
}

// ConsecutiveFailures are errors in a row.
type ConsecutiveFailures struct {
	// How many.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Consecutive *int32 `json:"consecutive,omitempty"`
}

// SuccessRate is a rate of success far below that of the others.
type SuccessRate struct {
	// How many instances there must be.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinimumHosts *int32 `json:"minimumHosts,omitempty"`

	// How many requests an instance must have had.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RequestVolume *int32 `json:"requestVolume,omitempty"`

	// By how many standard deviations, such as 1.9 or "1.9".
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	StandardDeviationFactor *apiextensionsv1.JSON `json:"standardDeviationFactor,omitempty"`
}

// FailurePercentage is a share of failures above a limit.
type FailurePercentage struct {
	// How many instances there must be.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinimumHosts *int32 `json:"minimumHosts,omitempty"`

	// How many requests an instance must have had.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RequestVolume *int32 `json:"requestVolume,omitempty"`

	// The limit, in percent.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Threshold *int32 `json:"threshold,omitempty"`
}
