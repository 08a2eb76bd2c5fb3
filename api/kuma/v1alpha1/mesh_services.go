package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
)

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
