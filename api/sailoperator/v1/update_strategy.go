package v1

import "time"

// IstioUpdateStrategy says how a new version takes over.
type IstioUpdateStrategy struct {
	// InPlace updates the one control plane there is.
	// RevisionBased starts the new version beside the old one, and removes that when nothing uses it any more.
	// +kubebuilder:default=InPlace
	// +optional
	Type UpdateStrategyType `json:"type,omitempty"`

	// Seconds that an inactive revision is kept after the last thing that used it went away.
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	InactiveRevisionDeletionGracePeriodSeconds *int64 `json:"inactiveRevisionDeletionGracePeriodSeconds,omitempty"`

	// Keeps an IstioRevisionTag called "default" that follows this Istio, for namespaces labelled istio-injection=enabled.
	// The tag goes with the Istio. When this is taken back, it goes as soon as nothing uses it.
	// A revision or tag of that name that belongs to another owner stays as it is.
	// +optional
	DefaultTag bool `json:"defaultTag,omitempty"`

	// Moves workloads from inactive revisions to the active one. Needs type RevisionBased.
	// +optional
	WorkloadMigration *WorkloadMigrationConfig `json:"workloadMigration,omitempty"`
}

// UpdateStrategyType names a way of updating a control plane.
//
// +kubebuilder:validation:Enum=InPlace;RevisionBased
type UpdateStrategyType string

// The ways of updating a control plane.
const (
	UpdateStrategyInPlace       UpdateStrategyType = "InPlace"
	UpdateStrategyRevisionBased UpdateStrategyType = "RevisionBased"
)

// DefaultInactiveRevisionDeletionGracePeriod is used where the field is not set.
const DefaultInactiveRevisionDeletionGracePeriod = 30 * time.Second

// InactiveRevisionDeletionGracePeriod is how long an inactive, unused revision is kept.
func (s *IstioUpdateStrategy) InactiveRevisionDeletionGracePeriod() time.Duration {
	if s.InactiveRevisionDeletionGracePeriodSeconds == nil {
		return DefaultInactiveRevisionDeletionGracePeriod
	}
	return time.Duration(*s.InactiveRevisionDeletionGracePeriodSeconds) * time.Second
}
