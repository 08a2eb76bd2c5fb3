package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Policy is what all kinds of policies have in common.
//
// +kubebuilder:object:generate=false
type Policy interface {
	metav1.Object
	runtime.Object
	// TopLevel is which proxies the policy is for, or nil for all of the mesh.
	TopLevel() *TargetRef
	// Entries are what it says of destinations, in order.
	Entries() []Entry
	// PolicyStatus is its status.
	PolicyStatus() *PolicyStatus
}

// PolicySpec is the part of the spec that all policies have.
type PolicySpec struct {
	// Which proxies it is for; without it, all of the mesh.
	// +optional
	TargetRef *TargetRef `json:"targetRef,omitempty"`
}

// ClientRules are the part of the spec that all policies but routes have.
type ClientRules struct {
	// What it says of clients. Kept as it is written.
	// +listType=atomic
	// +optional
	From []apiextensionsv1.JSON `json:"from,omitempty"`

	// What it says of all clients. Kept as it is written.
	// +listType=atomic
	// +optional
	Rules []apiextensionsv1.JSON `json:"rules,omitempty"`
}

// PolicyReport is the mesh and the status of a policy.
type PolicyReport struct {
	// The mesh that it is part of; the label kuma.io/mesh counts before it. Without both, default.
	// +optional
	Mesh string `json:"mesh,omitempty"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status PolicyStatus `json:"status,omitzero"`
}

// MeshField is the mesh as the resource names it outside its labels.
func (r *PolicyReport) MeshField() string { return r.Mesh }

// PolicyStatus is the status of the policy.
func (r *PolicyReport) PolicyStatus() *PolicyStatus { return &r.Status }

// Entry is what a policy says of a destination.
//
// +kubebuilder:object:generate=false
type Entry struct {
	// Index of the entry in spec.to.
	Index int
	// TargetRef is the destination.
	TargetRef ToTargetRef
	// Default points at what holds for it: the default of the policy's kind; of a route, the entry itself.
	Default any
}

func entriesOf[T any](list []T, read func(*T) (ToTargetRef, any)) []Entry {
	entries := make([]Entry, len(list))
	for i := range list {
		ref, conf := read(&list[i])
		entries[i] = Entry{Index: i, TargetRef: ref, Default: conf}
	}
	return entries
}

// Kinds that a targetRef may name beside those of this package.
const (
	MeshSubsetKind          = "MeshSubset"
	MeshServiceSubsetKind   = "MeshServiceSubset"
	MeshExternalServiceKind = "MeshExternalService"
)

// TargetRef is which proxies a policy is for.
type TargetRef struct {
	// The kind.
	// +kubebuilder:validation:Enum=Mesh;MeshSubset;MeshService;MeshServiceSubset;Dataplane;MeshGateway;MeshHTTPRoute
	// +required
	Kind string `json:"kind"`

	// The name.
	// +optional
	Name string `json:"name,omitempty"`

	// The namespace; without it, the policy's own.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Labels, instead of the name.
	// +optional
	Labels map[string]string `json:"labels,omitzero"`

	// Tags that narrow it down.
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// Name or number of a port.
	// +kubebuilder:validation:XIntOrString
	// +optional
	SectionName *intstr.IntOrString `json:"sectionName,omitempty"`

	// Kinds of proxies; without it, all.
	// +kubebuilder:validation:items:Enum=Sidecar;Gateway
	// +listType=atomic
	// +optional
	ProxyTypes []string `json:"proxyTypes,omitempty"`
}

// ToTargetRef is the destination that an entry of a policy is for.
type ToTargetRef struct {
	// The kind.
	// +kubebuilder:validation:Enum=Mesh;MeshService;MeshServiceSubset;MeshMultiZoneService;MeshExternalService;MeshHTTPRoute
	// +required
	Kind string `json:"kind"`

	// The name: of a MeshService, or an old value of kuma.io/service.
	// +optional
	Name string `json:"name,omitempty"`

	// The namespace; without it, the policy's own.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Labels, instead of the name. They match in every zone.
	// +optional
	Labels map[string]string `json:"labels,omitzero"`

	// Tags that narrow a MeshServiceSubset down.
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// Name or number of a port. With it, the MeshService itself is meant and never a kuma.io/service.
	// +kubebuilder:validation:XIntOrString
	// +optional
	SectionName *intstr.IntOrString `json:"sectionName,omitempty"`
}

// Section is the section as text, or nothing.
func (r *ToTargetRef) Section() string {
	if r.SectionName == nil {
		return ""
	}
	return r.SectionName.String()
}

// BackendRef is where a route sends traffic.
type BackendRef struct {
	// The kind.
	// +kubebuilder:validation:Enum=MeshService;MeshServiceSubset;MeshMultiZoneService;MeshExternalService
	// +required
	Kind string `json:"kind"`

	// The name: of a MeshService, or an old value of kuma.io/service.
	// +optional
	Name string `json:"name,omitempty"`

	// The namespace; without it, the route's own.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Labels, instead of the name.
	// +optional
	Labels map[string]string `json:"labels,omitzero"`

	// Tags that narrow a MeshServiceSubset down.
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// Name or number of a port.
	// +kubebuilder:validation:XIntOrString
	// +optional
	SectionName *intstr.IntOrString `json:"sectionName,omitempty"`

	// Number of a port. With it, the MeshService itself is meant and never a kuma.io/service.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port *int32 `json:"port,omitempty"`

	// Its share of the traffic; without it, 1.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// PolicyStatus is what was last seen of a policy.
type PolicyStatus struct {
	// The generation of the policy that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Resolved: whether it refers to something.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Lists as text: kubectl get shows only the first item of a list.
	// +optional
	Columns PolicyColumns `json:"columns,omitzero"`
}

// PolicyColumns are lists as text, for kubectl get.
type PolicyColumns struct {
	// The destinations of the entries, by name, or else by labels or kind.
	// +optional
	To string `json:"to,omitempty"`
}
