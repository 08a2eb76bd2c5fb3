package v1alpha1

// FailoverBehavior is how resources move away from clusters that fail. Not supported.
type FailoverBehavior struct {
	// When an application fails in a cluster.
	// +optional
	Application *ApplicationFailover `json:"application,omitempty"`

	// When a cluster fails.
	// +optional
	Cluster *ClusterFailover `json:"cluster,omitempty"`
}

// ApplicationFailover is how an application that fails moves to another cluster.
type ApplicationFailover struct {
	// When the application counts as failed.
	// +required
	DecisionConditions DecisionConditions `json:"decisionConditions"`

	// How the application is removed from the cluster that it leaves.
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// How long the application may take to become healthy elsewhere before it is removed.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// What the application takes along.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// ClusterFailover is how resources move away from a cluster that fails.
type ClusterFailover struct {
	// How resources are removed from the cluster.
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// What resources take along.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// PurgeMode is how resources are removed from the cluster that they leave.
//
// +kubebuilder:validation:Enum=Directly;Gracefully;Never;Immediately;Graciously
type PurgeMode string

// DecisionConditions are when an application counts as failed.
type DecisionConditions struct {
	// How long it may be unhealthy.
	// +optional
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`
}

// StatePreservation is which parts of its status a resource takes along.
type StatePreservation struct {
	// The parts.
	// +required
	Rules []StatePreservationRule `json:"rules"`
}

// StatePreservationRule is one part of the status of a resource.
type StatePreservationRule struct {
	// The label that carries the part to the next cluster.
	// +required
	AliasLabelName string `json:"aliasLabelName"`

	// Where the part is in the status.
	// +required
	JSONPath string `json:"jsonPath"`
}

// SchedulePriority is which resources are placed first. Not supported.
type SchedulePriority struct {
	// Where the priority class is.
	// +kubebuilder:validation:Enum=KubePriorityClass;PodPriorityClass;FederatedPriorityClass
	// +required
	PriorityClassSource string `json:"priorityClassSource"`

	// Name of the priority class.
	// +required
	PriorityClassName string `json:"priorityClassName"`
}

// WorkloadAffinity is which workloads go to the same clusters, or to different ones. Not supported.
type WorkloadAffinity struct {
	// Workloads that go to the same clusters.
	// +optional
	Affinity *WorkloadAffinityTerm `json:"affinity,omitempty"`

	// Workloads that go to different clusters.
	// +optional
	AntiAffinity *WorkloadAffinityTerm `json:"antiAffinity,omitempty"`
}

// WorkloadAffinityTerm is which workloads belong together.
type WorkloadAffinityTerm struct {
	// The label of workloads whose value makes a group.
	// +required
	GroupByLabelKey string `json:"groupByLabelKey"`
}
