package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MeshMultiZoneService is a service over several zones.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mmzsvc,categories=kuma
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="MESH",type=string,JSONPath=".metadata.labels.kuma\\.io/mesh",description="The mesh that it is part of."
// +kubebuilder:printcolumn:name="HOSTNAMES",type=string,JSONPath=".status.columns.hostnames",description="What clients call it."
// +kubebuilder:printcolumn:name="VIPS",type=string,JSONPath=".status.columns.vips",description="The addresses that clients dial."
// +kubebuilder:printcolumn:name="ZONES",type=string,JSONPath=".status.columns.zones",description="The zones of its MeshServices."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type MeshMultiZoneService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which MeshServices it is made of, and on which ports clients reach it.
	// +optional
	Spec MeshMultiZoneServiceSpec `json:"spec,omitzero"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status MeshMultiZoneServiceStatus `json:"status,omitzero"`
}

// MeshMultiZoneServiceList is a list of MeshMultiZoneServices.
//
// +kubebuilder:object:root=true
type MeshMultiZoneServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MeshMultiZoneService `json:"items"`
}

// MeshMultiZoneServiceSpec is what it is made of, and on which ports clients reach it.
type MeshMultiZoneServiceSpec struct {
	// Which MeshServices it is made of.
	// +required
	Selector MeshMultiZoneServiceSelector `json:"selector"`

	// The ports on which clients reach it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.port == p.port))",message="each port can be there once only: remove the second of two entries with the same port"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.name) || self.exists_one(q, has(q.name) && q.name == p.name))",message="each name can be there once only: give the second of two ports with the same name another name"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.name) || self.all(q, has(q.name) || p.name != string(q.port)))",message="a port without a name is named by its number: give the port that has this number for a name another name"
	// +listType=atomic
	// +required
	Ports []MultiZonePort `json:"ports"`
}

// MeshMultiZoneServiceSelector is which MeshServices a MeshMultiZoneService is made of.
type MeshMultiZoneServiceSelector struct {
	// Those with these labels.
	// +required
	MeshService LabelMatch `json:"meshService"`
}

// LabelMatch selects by labels.
type LabelMatch struct {
	// The labels that are needed. None match everything.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitzero"`
}

// Matches tells whether all the labels are there.
func (m *LabelMatch) Matches(labels map[string]string) bool {
	for key, value := range m.MatchLabels {
		if have, ok := labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

// MultiZonePort is a port on which clients reach a MeshMultiZoneService.
type MultiZonePort struct {
	// The number that clients dial, and that of the MeshServices.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`

	// Name of the port; without it, its number.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`

	// What it speaks: tcp, http, http2, grpc or kafka.
	// +optional
	AppProtocol string `json:"appProtocol,omitempty"`
}

// SectionName is what policies call the port.
func (p MultiZonePort) SectionName() string {
	return Port{Port: p.Port, Name: p.Name}.SectionName()
}

// MeshMultiZoneServiceStatus is what was last seen of a MeshMultiZoneService.
type MeshMultiZoneServiceStatus struct {
	ServiceStatus `json:",inline"`

	// The MeshServices that it is made of.
	// +listType=atomic
	// +optional
	MeshServices []MatchedMeshService `json:"meshServices,omitempty"`
}

// ServiceStatus is the part of the status that both kinds of services have.
func (s *MeshMultiZoneService) ServiceStatus() *ServiceStatus { return &s.Status.ServiceStatus }

// MatchedMeshService is a MeshService that a MeshMultiZoneService is made of.
type MatchedMeshService struct {
	// Its name.
	// +required
	Name string `json:"name"`

	// Its namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Its zone.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Its mesh.
	// +optional
	Mesh string `json:"mesh,omitempty"`
}
