package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Dataplane is a proxy, and the workload beside it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=dp,categories=kuma
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="MESH",type=string,JSONPath=".metadata.labels.kuma\\.io/mesh",description="The mesh that it is part of."
// +kubebuilder:printcolumn:name="ADDRESS",type=string,JSONPath=".spec.networking.address",description="Where it is reached."
// +kubebuilder:printcolumn:name="FIRST-SERVICE",type=string,JSONPath=".spec.networking.inbound[*].tags.kuma\\.io/service",description="What its first inbound serves."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type Dataplane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The mesh that it is part of; the label kuma.io/mesh counts before it. Without both, default.
	// +optional
	Mesh string `json:"mesh,omitempty"`

	// What the proxy serves and reaches.
	// +optional
	Spec DataplaneSpec `json:"spec,omitzero"`

	// What Kuma last saw of it. Not read or written by Fairlead.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`
}

// MeshField is the mesh as the resource names it outside its labels.
func (d *Dataplane) MeshField() string { return d.Mesh }

// DataplaneList is a list of Dataplanes.
//
// +kubebuilder:object:root=true
type DataplaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Dataplane `json:"items"`
}

// DataplaneSpec is what a proxy serves and reaches. What Kuma's users write beyond this is kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type DataplaneSpec struct {
	// Where it is, what it serves and what it reaches.
	// +optional
	Networking Networking `json:"networking,omitzero"`
}

// Networking is where a proxy is, what it serves and what it reaches.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Networking struct {
	// Where other proxies of its zone reach it.
	// +optional
	Address string `json:"address,omitempty"`

	// Where they reach it instead, if it is behind another address.
	// +optional
	AdvertisedAddress string `json:"advertisedAddress,omitempty"`

	// What it serves.
	// +listType=atomic
	// +optional
	Inbound []Inbound `json:"inbound,omitempty"`

	// What it reaches, where its traffic is not redirected.
	// +listType=atomic
	// +optional
	Outbound []Outbound `json:"outbound,omitempty"`

	// How its traffic is redirected, and what it then reaches.
	// +optional
	TransparentProxying *TransparentProxying `json:"transparentProxying,omitempty"`
}

// InboundState is whether an inbound takes traffic.
//
// +kubebuilder:validation:Enum=Ready;NotReady;Ignored
type InboundState string

// The states of an inbound.
const (
	// InboundReady takes traffic. It is the default.
	InboundReady InboundState = "Ready"
	// InboundNotReady takes none for now.
	InboundNotReady InboundState = "NotReady"
	// InboundIgnored is as if it were not there.
	InboundIgnored InboundState = "Ignored"
)

// Inbound is a port that a proxy serves.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Inbound struct {
	// The port on which the proxy listens.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`

	// The port on which the workload listens; without it, the same.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	ServicePort int32 `json:"servicePort,omitempty"`

	// Where the workload listens; without it, on 127.0.0.1.
	// +optional
	ServiceAddress string `json:"serviceAddress,omitempty"`

	// Where the proxy listens; without it, at networking.address.
	// +optional
	Address string `json:"address,omitempty"`

	// Name of the port, by which a MeshService finds it.
	// +optional
	Name string `json:"name,omitempty"`

	// What it speaks: tcp, http, http2, grpc or kafka. Without it, the tag kuma.io/protocol.
	// +optional
	Protocol string `json:"protocol,omitempty"`

	// What it is known by, kuma.io/service before all.
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// Whether it takes traffic.
	// +optional
	State InboundState `json:"state,omitempty"`

	// Whether the workload is well, as Kuma wrote it before there was a state.
	// +optional
	Health *InboundHealth `json:"health,omitempty"`
}

// InboundHealth is whether a workload is well.
type InboundHealth struct {
	// It is.
	// +optional
	Ready bool `json:"ready"`
}

// InForce is the state, as health tells where none is written.
func (i *Inbound) InForce() InboundState {
	switch {
	case i.State != "":
		return i.State
	case i.Health != nil && !i.Health.Ready:
		return InboundNotReady
	default:
		return InboundReady
	}
}

// Outbound is something that a proxy reaches through a port of its own.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Outbound struct {
	// Where the proxy listens; without it, on 127.0.0.1.
	// +optional
	Address string `json:"address,omitempty"`

	// The port on which it listens.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`

	// What is reached, by its tags.
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// What is reached, by reference.
	// +optional
	BackendRef *OutboundBackendRef `json:"backendRef,omitempty"`
}

// OutboundBackendRef refers to what an outbound reaches.
type OutboundBackendRef struct {
	// The kind.
	// +kubebuilder:validation:Enum=MeshService;MeshMultiZoneService;MeshExternalService
	// +required
	Kind string `json:"kind"`

	// The name.
	// +optional
	Name string `json:"name,omitempty"`

	// Labels, instead of the name.
	// +optional
	Labels map[string]string `json:"labels,omitzero"`

	// The port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`
}

// TransparentProxying is how a proxy's traffic is redirected, and what it then reaches.
//
// +kubebuilder:pruning:PreserveUnknownFields
type TransparentProxying struct {
	// Where traffic to the workload goes.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	RedirectPortInbound int32 `json:"redirectPortInbound,omitempty"`

	// Where traffic from the workload goes.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	RedirectPortOutbound int32 `json:"redirectPortOutbound,omitempty"`

	// The values of kuma.io/service that it reaches; without it, all.
	// +listType=atomic
	// +optional
	ReachableServices []string `json:"reachableServices,omitempty"`

	// The backends that it reaches: one, or a list. An empty list means none; empty labels match every one of the kind.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ReachableBackendRefs *BackendRefs `json:"reachableBackendRefs,omitempty"`

	// The same, as Kuma writes it. Where both are there, reachableBackendRefs counts.
	// +optional
	ReachableBackends *ReachableBackends `json:"reachableBackends,omitempty"`
}

// ReachableBackends are the backends that a proxy reaches, as Kuma writes them.
type ReachableBackends struct {
	// The backends; none means that it reaches none.
	// +listType=atomic
	// +optional
	Refs []ReachableBackendRef `json:"refs,omitzero"`
}

// ReachableBackendRef refers to backends that a proxy reaches.
type ReachableBackendRef struct {
	// The kind.
	// +kubebuilder:validation:Enum=MeshService;MeshMultiZoneService;MeshExternalService
	// +required
	Kind string `json:"kind"`

	// The name.
	// +optional
	Name string `json:"name,omitempty"`

	// The namespace; without it, the proxy's own.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Labels, instead of the name. Empty ones match every one of the kind, and differ from none.
	// +optional
	Labels map[string]string `json:"labels,omitzero"`

	// The port; without it, all of them.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port *int32 `json:"port,omitempty"`
}

// BackendRefs are the backends that the proxy reaches, and whether any list of them was written at all.
func (t *TransparentProxying) BackendRefs() ([]ReachableBackendRef, bool) {
	switch {
	case t == nil:
		return nil, false
	case t.ReachableBackendRefs != nil:
		return t.ReachableBackendRefs.Items, true
	case t.ReachableBackends != nil:
		return t.ReachableBackends.Refs, true
	default:
		return nil, false
	}
}
