package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ZoneIngress is where the traffic of other zones enters a zone.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=zoneingresses,shortName=zi,categories=kuma
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="ZONE",type=string,JSONPath=".spec.zone",description="The zone that it leads to."
// +kubebuilder:printcolumn:name="ADDRESS",type=string,JSONPath=".spec.networking.advertisedAddress",description="Where other zones reach it."
// +kubebuilder:printcolumn:name="PORT",type=integer,JSONPath=".spec.networking.advertisedPort",description="The port on which they reach it."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type ZoneIngress struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Where it is, and what is behind it.
	// +optional
	Spec ZoneIngressSpec `json:"spec,omitzero"`
}

// ZoneIngressList is a list of ZoneIngresses.
//
// +kubebuilder:object:root=true
type ZoneIngressList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ZoneIngress `json:"items"`
}

// ZoneIngressSpec is where an ingress is, and what is behind it. What Kuma's users write beyond this is kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ZoneIngressSpec struct {
	// The zone that it leads to.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Where it is.
	// +optional
	Networking ZoneIngressNetworking `json:"networking,omitzero"`

	// What is behind it.
	// +listType=atomic
	// +optional
	AvailableServices []AvailableService `json:"availableServices,omitempty"`
}

// ZoneIngressNetworking is where an ingress is.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ZoneIngressNetworking struct {
	// Where its own zone reaches it.
	// +optional
	Address string `json:"address,omitempty"`

	// The port on which it listens.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`

	// Where other zones reach it.
	// +optional
	AdvertisedAddress string `json:"advertisedAddress,omitempty"`

	// The port on which they reach it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	AdvertisedPort int32 `json:"advertisedPort,omitempty"`
}

// AvailableService is a service behind an ingress.
//
// +kubebuilder:pruning:PreserveUnknownFields
type AvailableService struct {
	// The tags that all its instances have.
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// How many instances it has.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Instances int32 `json:"instances,omitempty"`

	// The mesh that it is part of.
	// +optional
	Mesh string `json:"mesh,omitempty"`
}
