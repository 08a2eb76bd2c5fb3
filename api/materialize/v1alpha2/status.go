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

	// How far the rollout is. Absent when nothing is being rolled out, and in a status that was written before this field
	// existed.
	// +optional
	Progress *RolloutProgress `json:"progress,omitempty"`

	// UpToDate: what serves is what the spec asks for.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutProgress is how far a rollout is. It changes together with the condition UpToDate, whose message says the same in
// words.
type RolloutProgress struct {
	// Generation that is waited for.
	Generation int64 `json:"generation"`

	// Last answer of environmentd of that generation. Absent when the rollout does not depend on an answer.
	// +optional
	Leader *LeaderAnswer `json:"leader,omitempty"`

	// Pods of that generation. Absent when the rollout does not wait for pods.
	// +optional
	Pods *PodCount `json:"pods,omitempty"`

	// What the rollout waits for, or why it does not go on.
	// +optional
	Message string `json:"message,omitempty"`
}

// LeaderAnswer is what environmentd answers when it is asked for its status.
type LeaderAnswer struct {
	// Status of environmentd. Unknown: there is no answer, or none that can be read.
	Status LeaderStatus `json:"status"`

	// Why the status is unknown.
	// +optional
	Message string `json:"message,omitempty"`
}

// LeaderStatus is the status of an environmentd on its way to becoming the leader.
//
// +kubebuilder:validation:Enum=Initializing;ReadyToPromote;Promoting;IsLeader;Unknown
type LeaderStatus string

// The statuses of an environmentd, in their order.
const (
	LeaderInitializing   LeaderStatus = "Initializing"
	LeaderReadyToPromote LeaderStatus = "ReadyToPromote"
	LeaderPromoting      LeaderStatus = "Promoting"
	LeaderIsLeader       LeaderStatus = "IsLeader"
	// LeaderUnknown is Fairlead's own: environmentd never says so.
	LeaderUnknown LeaderStatus = "Unknown"
)

// PodCount is how many pods of a generation are ready.
type PodCount struct {
	// Pods that are ready.
	Ready int32 `json:"ready"`
	// Pods that the generation should have.
	Desired int32 `json:"desired"`
}

// ConditionUpToDate tells whether what serves is what the spec asks for.
const ConditionUpToDate = "UpToDate"

// ConditionServiceAccountAllowed is there, and False, while the spec names a ServiceAccount that the Materialize may not use.
// What runs with it goes on, and nothing is rolled out with it.
const ConditionServiceAccountAllowed = "ServiceAccountAllowed"

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

// The reasons of ConditionServiceAccountAllowed.
const (
	// ReasonNotAllowed: the ServiceAccount has no AnnotationAllowMaterialize.
	ReasonNotAllowed Reason = "NotAllowed"
	// ReasonNotFound: there is no such ServiceAccount.
	ReasonNotFound Reason = "NotFound"
	// ReasonNotReadable: the ServiceAccount could not be read.
	ReasonNotReadable Reason = "NotReadable"
)
