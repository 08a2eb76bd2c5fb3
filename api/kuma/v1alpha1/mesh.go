package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"

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
// +kubebuilder:printcolumn:name="CONSUMERS",type=integer,JSONPath=".status.migration.total",description="How many consumers there are."
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

	// Encryption between proxies, as Kuma's users write it. Fairlead does not serve it, and says so in the condition Served.
	// +optional
	MTLS *MTLS `json:"mtls,omitempty"`
}

// MTLS is the encryption between proxies.
//
// +kubebuilder:pruning:PreserveUnknownFields
type MTLS struct {
	// The backend that issues certificates. Without it, nothing is encrypted.
	// +optional
	EnabledBackend string `json:"enabledBackend,omitempty"`
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

	// Generated, VIPs, Served and ConsumersSwitched.
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

// MTLSBackend is the backend that is to issue certificates, empty without mTLS.
func (m *Mesh) MTLSBackend() string {
	if m.Spec.MTLS == nil {
		return ""
	}
	return m.Spec.MTLS.EnabledBackend
}

// ModeInForce is the mode that proxies are configured by. A mesh leaves Disabled, and enters Exclusive, which removes the tags,
// only when the status has the mode: generationStatus.nextMode writes it when the MeshServices exist. Other edits of a mesh in
// Exclusive change nothing: MeshServices are not deleted before the status has another mode.
func (m *Mesh) ModeInForce() Mode {
	mode, was := m.Mode(), m.Status.Mode
	switch {
	case mode != ModeDisabled && was == ModeDisabled:
		return ModeDisabled
	case mode == ModeExclusive && was != ModeExclusive:
		return ModeEverywhere
	}
	return mode
}

// Mode is the mode of the spec: Disabled by default, and ReachableBackendRefs in either spelling.
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

// Mode is how far MeshServices are in use.
type Mode string

// The modes of a Mesh.
const (
	// ModeDisabled: no MeshService is generated, and nothing changes.
	ModeDisabled Mode = "Disabled"
	// ModeEverywhere: every proxy reaches the MeshServices, beside the values of kuma.io/service.
	ModeEverywhere Mode = "Everywhere"
	// ModeReachableBackendRefs: only proxies that list backends reach them.
	ModeReachableBackendRefs Mode = "ReachableBackendRefs"
	// ModeExclusive: every proxy reaches MeshServices only.
	ModeExclusive Mode = "Exclusive"
	// Kuma's spelling of ModeReachableBackendRefs.
	modeReachableBackends Mode = "ReachableBackends"
)

// MeshServices is how far MeshServices are in use, as the user wrote it.
type MeshServices struct {
	// Mode as it is written; Mesh.Mode tells the one in force.
	Mode Mode
	// Object tells that it is written as an object with a mode, and not as the mode alone.
	Object bool
}

type meshServicesObject struct {
	Mode Mode `json:"mode,omitempty"`
}

// UnmarshalJSON takes a mode, or an object with one.
func (m *MeshServices) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		m.Object = false
		if err := json.Unmarshal(data, &m.Mode); err != nil {
			return fmt.Errorf("meshServices must be a mode such as Everywhere, or an object with a mode: %w", err)
		}
		return nil
	}
	var object meshServicesObject
	if err := json.Unmarshal(data, &object); err != nil {
		return fmt.Errorf("meshServices must be a mode such as Everywhere, or an object with a mode: %w", err)
	}
	*m = MeshServices{Mode: object.Mode, Object: true}
	return nil
}

// MarshalJSON writes the form that was read.
func (m MeshServices) MarshalJSON() ([]byte, error) {
	if m.Object {
		return json.Marshal(meshServicesObject{Mode: m.Mode})
	}
	return json.Marshal(m.Mode)
}
