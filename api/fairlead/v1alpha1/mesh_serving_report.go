package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MeshServingReport says which proxies are connected to one process that serves them, and what they have acknowledged. A
// process spreads its proxies over up to 16 reports. Written by `fairlead serve-mesh`, and read by the operator, which removes
// the reports of processes that have ended.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="REPLICA",type=string,JSONPath=".replica",description="The process that wrote it."
// +kubebuilder:printcolumn:name="CONNECTED",type=integer,JSONPath=".connected",description="How many proxies it lists."
// +kubebuilder:printcolumn:name="RENEWED",type=date,JSONPath=".renewTime",description="When the process wrote it."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type MeshServingReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Name of the process, which is another one after a restart.
	// +required
	// +kubebuilder:validation:MinLength=1
	Replica string `json:"replica"`

	// When the process wrote the report. It writes its first one every five seconds; one that has not written for fifteen is
	// taken to have ended.
	// +optional
	RenewTime metav1.MicroTime `json:"renewTime,omitempty"`

	// Digest of the consumers that are switched by the MeshConsumerSlices that the process has read, by Mesh.
	// +optional
	Recorded map[string]string `json:"recorded,omitempty"`

	// How many proxies are listed.
	// +optional
	Connected int32 `json:"connected"`

	// The proxies that are connected.
	// +listType=atomic
	// +optional
	Proxies []ReportedProxy `json:"proxies,omitempty"`
}

// Destinations is what the configuration of a proxy leads its consumer to.
type Destinations string

// The two of a consumer, before the switch and after it.
const (
	DestinationTags         Destinations = "Tags"
	DestinationMeshServices Destinations = "MeshServices"
)

// ReportedProxy is a proxy that is connected.
type ReportedProxy struct {
	// Node id.
	ID string `json:"id"`

	// What the configuration leads to that the proxy acknowledged last; empty if it has acknowledged none.
	// +optional
	Acknowledged Destinations `json:"acknowledged,omitempty"`

	// What the configuration leads to that the proxy rejected.
	// +optional
	Rejected Destinations `json:"rejected,omitempty"`

	// Why the proxy rejected it (NACK).
	// +optional
	Message string `json:"message,omitempty"`
}

// MeshServingReportList is a list of MeshServingReports.
//
// +kubebuilder:object:root=true
type MeshServingReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MeshServingReport `json:"items"`
}
