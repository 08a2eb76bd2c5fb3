package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Mesh is a set of proxies that reach one another.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=kuma
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=".status.mode",description="How far MeshServices are in use."
// +kubebuilder:printcolumn:name="SWITCHED",type=integer,JSONPath=".status.migration.switched",description="How many consumers have been switched over."
// +kubebuilder:printcolumn:name="CONSUMERS",type=integer,JSONPath=".status.migration.total",description="How many consumers are to be switched over."
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=".status.conditions[?(@.type==\"ConsumersSwitched\")].reason",description="What becomes of the consumers."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must consist of at most 63 lower-case letters, digits and '-': it becomes part of the names of clusters; give the Mesh another name"
type Mesh struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the mesh does.
	// +optional
	Spec MeshSpec `json:"spec,omitzero"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status MeshStatus `json:"status,omitzero"`
}

// MeshList is a list of Meshes.
//
// +kubebuilder:object:root=true
type MeshList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Mesh `json:"items"`
}

// MeshSpec is what the mesh does. What Kuma's users write beyond this is kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type MeshSpec struct {
	// How far MeshServices are in use: Disabled, Everywhere, ReachableBackendRefs or Exclusive. It may also be written
	// as an object with a mode, and ReachableBackendRefs as ReachableBackends. Without it, Disabled.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Enum={Disabled,Everywhere,ReachableBackendRefs,ReachableBackends,Exclusive,{mode:Disabled},{mode:Everywhere},{mode:ReachableBackendRefs},{mode:ReachableBackends},{mode:Exclusive}}
	// +optional
	MeshServices *MeshServices `json:"meshServices,omitempty"`

	// How traffic finds its way.
	// +optional
	Routing *Routing `json:"routing,omitempty"`
}

// Routing is how traffic finds its way.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Routing struct {
	// Send traffic for a kuma.io/service to the instances of the own zone while there are any.
	// +optional
	LocalityAwareLoadBalancing bool `json:"localityAwareLoadBalancing,omitempty"`
}

// MeshStatus is what was last seen of a Mesh.
type MeshStatus struct {
	// The generation of the Mesh that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Served and ConsumersSwitched.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// The mode in force.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// How many MeshServices the mesh has.
	// +optional
	MeshServices *MeshServiceCount `json:"meshServices,omitempty"`

	// How far the consumers have been switched over.
	// +optional
	Migration *MeshMigration `json:"migration,omitempty"`
}

// MeshServiceCount counts MeshServices.
type MeshServiceCount struct {
	// All of them.
	// +optional
	Total int32 `json:"total"`
}

// ModeInForce is the mode that proxies are configured by. A mesh leaves Disabled, and gets to Exclusive, which takes the tags
// away, when the status tells so: what proxies are led to has to be there.
func (m *Mesh) ModeInForce() Mode {
	mode, was := m.Mode(), m.Status.Mode
	switch {
	case mode != ModeDisabled && was == ModeDisabled:
		return ModeDisabled
	case mode == ModeExclusive && (was != ModeExclusive || m.Status.ObservedGeneration != m.Generation):
		return ModeEverywhere
	}
	return mode
}

// Mode is the mode that is asked for: Disabled where nothing is said, and one spelling for what has two.
func (m *Mesh) Mode() Mode {
	if m.Spec.MeshServices == nil {
		return ModeDisabled
	}
	switch mode := m.Spec.MeshServices.Mode; mode {
	case "":
		return ModeDisabled
	case modeReachableBackends:
		return ModeReachableBackendRefs
	default:
		return mode
	}
}
