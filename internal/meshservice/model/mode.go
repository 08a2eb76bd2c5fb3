package model

// Mode is how a mesh uses its MeshServices.
type Mode string

// The modes.
const (
	Disabled             Mode = "Disabled"
	Everywhere           Mode = "Everywhere"
	ReachableBackendRefs Mode = "ReachableBackendRefs"
	Exclusive            Mode = "Exclusive"
)
