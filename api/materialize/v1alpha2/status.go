package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SharedStatus is what every version of the API tells.
type SharedStatus struct {
	// Generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Part of the names of everything that belongs to the environment: ten lower-case letters and digits.
	// +optional
	ResourceID string `json:"resourceId,omitempty"`

	// Identity of the environment, where the spec does not say.
	// +optional
	EnvironmentID UUID `json:"environmentId,omitempty"`

	// Generation that serves. The first is 1.
	// +optional
	ActiveGeneration int64 `json:"activeGeneration,omitempty"`

	// Hash of the spec that was last rolled out completely. Absent before the first.
	// +optional
	LastCompletedRolloutHash string `json:"lastCompletedRolloutHash,omitempty"`

	// Hash of the spec that is being rolled out, or was last.
	// +optional
	RequestedRolloutHash string `json:"requestedRolloutHash,omitempty"`

	// Version of the algorithm that made the hashes.
	// +optional
	RolloutHashVersion int32 `json:"rolloutHashVersion,omitempty"`

	// When the rollout was asked for that is in progress, or was last.
	// +optional
	RolloutRequestedAt *metav1.Time `json:"rolloutRequestedAt,omitempty"`

	// The forcePromote that was in the spec already when the rollout was asked for, and so was not meant for it. It counts
	// again when it has been removed and is set anew.
	// +optional
	IgnoredForcePromote string `json:"ignoredForcePromote,omitempty"`

	// Image of environmentd in the rollout that was last completed.
	// +optional
	LastCompletedRolloutEnvironmentdImageRef string `json:"lastCompletedRolloutEnvironmentdImageRef,omitempty"`

	// UpToDate: what serves is what the spec asks for.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionUpToDate tells whether what serves is what the spec asks for.
const ConditionUpToDate = "UpToDate"

// Reason is why the condition is as it is.
type Reason string

// The reasons of ConditionUpToDate.
const (
	// ReasonApplied: True, nothing is left to roll out.
	ReasonApplied Reason = "Applied"
	// ReasonApplying: Unknown, the next generation is being made and has yet to get ready.
	ReasonApplying Reason = "Applying"
	// ReasonReadyToPromote: Unknown, the next generation waits for forcePromote.
	ReasonReadyToPromote Reason = "ReadyToPromote"
	// ReasonPromoting: Unknown, the next generation takes over, and nothing stops that any more.
	ReasonPromoting Reason = "Promoting"
	// ReasonFailedDeploy: False, the next generation cannot be made.
	ReasonFailedDeploy Reason = "FailedDeploy"
	// ReasonRolloutTimeout: False, the rollout took too long and was cancelled.
	ReasonRolloutTimeout Reason = "RolloutTimeout"
)
