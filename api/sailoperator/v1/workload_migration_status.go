package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkloadMigrationStatus is how far the workloads of an Istio have come.
type WorkloadMigrationStatus struct {
	// Idle: nothing to move. InProgress: workloads are being moved.
	// Completed: all are there. Failed: it has ended, and some are not.
	// +required
	State WorkloadMigrationState `json:"state"`

	// Revision that workloads are moved to.
	// +optional
	TargetRevision string `json:"targetRevision,omitempty"`

	// Workloads that are to be moved, including those that already have been.
	// +optional
	TotalWorkloads int32 `json:"totalWorkloads"`

	// Workloads that run on the target.
	// +optional
	MigratedWorkloads int32 `json:"migratedWorkloads"`

	// Workloads that did not get there.
	// +optional
	FailedWorkloads int32 `json:"failedWorkloads"`

	// The ten most recent failures.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Failures []WorkloadMigrationFailure `json:"failures,omitempty"`

	// When this migration started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// When it ended, with or without failures.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Progress in batches. Only for strategy Batched.
	// +optional
	Batched *BatchedMigrationStatus `json:"batched,omitempty"`
}

// MaxReportedFailures is how many failures a status holds.
const MaxReportedFailures = 10

// BatchedMigrationStatus is the progress of a batched migration. Zeros are written out: an API server makes null, which it
// then refuses, of an empty object that is applied in the place of one with fields.
type BatchedMigrationStatus struct {
	// Batch that is being moved, counted from 1.
	// +optional
	CurrentBatch int32 `json:"currentBatch"`

	// Batches there are altogether.
	// +optional
	TotalBatches int32 `json:"totalBatches"`
}

// WorkloadMigrationState names a stage of a migration.
//
// +kubebuilder:validation:Enum=Idle;InProgress;Completed;Failed
type WorkloadMigrationState string

// The stages of a migration.
const (
	WorkloadMigrationStateIdle       WorkloadMigrationState = "Idle"
	WorkloadMigrationStateInProgress WorkloadMigrationState = "InProgress"
	WorkloadMigrationStateCompleted  WorkloadMigrationState = "Completed"
	WorkloadMigrationStateFailed     WorkloadMigrationState = "Failed"
)

// WorkloadMigrationFailure is one workload that did not reach the target.
type WorkloadMigrationFailure struct {
	// Namespace of the workload.
	// +required
	Namespace string `json:"namespace"`

	// Name of the workload.
	// +required
	Name string `json:"name"`

	// Kind of the workload, such as Deployment.
	// +required
	Kind string `json:"kind"`

	// What went wrong.
	// +required
	Reason string `json:"reason"`

	// Why, in one word that scripts can rely on, such as ReadinessTimeout or Refused.
	// +optional
	Code Reason `json:"code,omitempty"`

	// When it went wrong.
	// +required
	Timestamp metav1.Time `json:"timestamp"`
}
