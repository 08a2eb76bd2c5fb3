package v1alpha1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MeshService is a service of one zone.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=msvc,categories=kuma
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="MESH",type=string,JSONPath=".metadata.labels.kuma\\.io/mesh",description="The mesh that it is part of."
// +kubebuilder:printcolumn:name="ZONE",type=string,JSONPath=".metadata.labels.kuma\\.io/zone",description="The zone that it comes from."
// +kubebuilder:printcolumn:name="HOSTNAMES",type=string,JSONPath=".status.columns.hostnames",description="What clients call it."
// +kubebuilder:printcolumn:name="VIPS",type=string,JSONPath=".status.columns.vips",description="The addresses that clients dial."
// +kubebuilder:printcolumn:name="PROXIES",type=integer,JSONPath=".status.dataplaneProxies.total",description="How many proxies serve it."
// +kubebuilder:printcolumn:name="HEALTHY",type=integer,JSONPath=".status.dataplaneProxies.healthy",description="How many of them are well."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type MeshService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which proxies serve it, and on which ports.
	// +optional
	Spec MeshServiceSpec `json:"spec,omitzero"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status MeshServiceStatus `json:"status,omitzero"`
}

// MeshServiceList is a list of MeshServices.
//
// +kubebuilder:object:root=true
type MeshServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MeshService `json:"items"`
}

// MeshServiceSpec is which proxies serve, and on which ports.
type MeshServiceSpec struct {
	// Which proxies serve it.
	// +optional
	Selector MeshServiceSelector `json:"selector,omitzero"`

	// The ports on which clients reach it.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.port == p.port))",message="each port can be there once only: remove the second of two entries with the same port"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.name) || self.exists_one(q, has(q.name) && q.name == p.name))",message="each name can be there once only: give the second of two ports with the same name another name"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.name) || self.all(q, has(q.name) || p.name != string(q.port)))",message="a port without a name is named by its number: give the port that has this number for a name another name"
	// +listType=atomic
	// +optional
	Ports []Port `json:"ports,omitempty"`

	// Who its proxies say they are.
	// +listType=atomic
	// +optional
	Identities []Identity `json:"identities,omitempty"`

	// Whether any proxy of it takes traffic, as other zones are told.
	// +kubebuilder:validation:Enum=Available;Unavailable
	// +optional
	State string `json:"state,omitempty"`
}

// MeshServiceSelector is which proxies serve a MeshService.
type MeshServiceSelector struct {
	// Tags that an inbound must have.
	// +optional
	DataplaneTags map[string]string `json:"dataplaneTags,omitempty"`

	// One Dataplane.
	// +optional
	DataplaneRef *DataplaneRef `json:"dataplaneRef,omitempty"`
}

// DataplaneRef refers to one Dataplane.
type DataplaneRef struct {
	// Its name.
	// +required
	Name string `json:"name"`
}

// Port is a port on which clients reach a service.
type Port struct {
	// The number that clients dial.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`

	// Name of the port; without it, its number.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`

	// The number or name of the inbound behind it; without it, port.
	// +kubebuilder:validation:XIntOrString
	// +optional
	TargetPort intstr.IntOrString `json:"targetPort,omitzero"`

	// What it speaks: tcp, http, http2, grpc or kafka.
	// +optional
	AppProtocol string `json:"appProtocol,omitempty"`
}

// SectionName is what policies call the port.
func (p Port) SectionName() string {
	if p.Name != "" {
		return p.Name
	}
	return strconv.Itoa(int(p.Port))
}

// Identity is who a proxy says it is.
type Identity struct {
	// What kind of identity.
	// +kubebuilder:validation:Enum=ServiceTag;SpiffeID
	// +required
	Type string `json:"type"`

	// The identity.
	// +required
	Value string `json:"value"`
}

// MeshServiceStatus is what was last seen of a MeshService.
type MeshServiceStatus struct {
	ServiceStatus `json:",inline"`

	// How many proxies serve it.
	// +optional
	DataplaneProxies DataplaneProxies `json:"dataplaneProxies,omitzero"`
}

// ServiceStatus is what was last seen of a MeshService or MeshMultiZoneService.
type ServiceStatus struct {
	// The generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Addressed and VIPs; of a MeshService also PortsAgree and Resolved.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// What clients call it.
	// +listType=atomic
	// +optional
	Addresses []Address `json:"addresses,omitempty"`

	// The addresses that clients dial.
	// +listType=atomic
	// +optional
	VIPs []VIP `json:"vips,omitempty"`

	// The lists as text: kubectl get shows only the first item of a list.
	// +optional
	Columns ServiceColumns `json:"columns,omitzero"`
}

// ServiceColumns are lists as text, for kubectl get.
type ServiceColumns struct {
	// The hostnames of the addresses.
	// +optional
	Hostnames string `json:"hostnames,omitempty"`

	// The VIPs.
	// +optional
	VIPs string `json:"vips,omitempty"`

	// The zones of the MeshServices of a MeshMultiZoneService.
	// +optional
	Zones string `json:"zones,omitempty"`
}

// ServiceStatus is the part of the status that both kinds of services have.
func (s *MeshService) ServiceStatus() *ServiceStatus { return &s.Status.ServiceStatus }

// Address is what clients call a service.
type Address struct {
	// The name.
	// +required
	Hostname string `json:"hostname"`

	// Where the name comes from.
	// +optional
	Origin string `json:"origin,omitempty"`

	// The HostnameGenerator that gave it.
	// +optional
	HostnameGeneratorRef HostnameGeneratorRef `json:"hostnameGeneratorRef,omitzero"`
}

// OriginHostnameGenerator is the origin of an Address that a HostnameGenerator gave.
const OriginHostnameGenerator = "HostnameGenerator"

// HostnameGeneratorRef refers to a HostnameGenerator.
type HostnameGeneratorRef struct {
	// Its name, with its namespace behind a dot.
	// +required
	CoreName string `json:"coreName"`
}

// VIP is a virtual address that clients dial.
type VIP struct {
	// The address.
	// +required
	IP string `json:"ip"`
}

// DataplaneProxies counts the proxies of a service.
type DataplaneProxies struct {
	// All of them.
	// +optional
	Total int32 `json:"total"`

	// Those that are connected.
	// +optional
	Connected int32 `json:"connected"`

	// Those that take traffic.
	// +optional
	Healthy int32 `json:"healthy"`
}
