package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// ResourceBinding is a resource in a namespace of the hub, and the clusters that it goes to.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=rb,categories=karmada-io
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="SCHEDULED",type=string,JSONPath=".status.conditions[?(@.type==\"Scheduled\")].status",description="Whether its clusters are known."
// +kubebuilder:printcolumn:name="FULLYAPPLIED",type=string,JSONPath=".status.conditions[?(@.type==\"FullyApplied\")].status",description="Whether it is as it should be in all of them."
// +kubebuilder:printcolumn:name="REASON",type=string,priority=1,JSONPath=".status.conditions[?(@.type==\"FullyApplied\")].reason",description="Why, or why not."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type ResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What goes where.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status ResourceBindingStatus `json:"status,omitzero"`
}

// ClusterResourceBinding is a resource of the hub that is in no namespace, and the clusters that it goes to.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=crb,categories=karmada-io
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="SCHEDULED",type=string,JSONPath=".status.conditions[?(@.type==\"Scheduled\")].status",description="Whether its clusters are known."
// +kubebuilder:printcolumn:name="FULLYAPPLIED",type=string,JSONPath=".status.conditions[?(@.type==\"FullyApplied\")].status",description="Whether it is as it should be in all of them."
// +kubebuilder:printcolumn:name="REASON",type=string,priority=1,JSONPath=".status.conditions[?(@.type==\"FullyApplied\")].reason",description="Why, or why not."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type ClusterResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What goes where.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status ResourceBindingStatus `json:"status,omitzero"`
}

// ResourceBindingSpec is what goes where.
type ResourceBindingSpec struct {
	// The resource on the hub.
	// +required
	Resource ObjectReference `json:"resource"`

	// The clusters that it goes to.
	// +listType=map
	// +listMapKey=name
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`

	// How many replicas the resource asks for, if it has any.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// What becomes of an object that a cluster already runs, as the policy says.
	// +kubebuilder:default=Abort
	// +optional
	ConflictResolution policyv1alpha1.ConflictResolution `json:"conflictResolution,omitempty"`

	// As the policy says.
	// +optional
	Placement *policyv1alpha1.Placement `json:"placement,omitempty"`

	// As the policy says.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// As the policy says.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// As the policy says.
	// +optional
	DeletionProtection policyv1alpha1.DeletionProtection `json:"deletionProtection,omitempty"`

	// As the policy says.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// Resources that need this one to run, and the clusters that they need it in.
	// +optional
	RequiredBy []BindingSnapshot `json:"requiredBy,omitempty"`

	// As the policy says.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// What one replica needs, if the placement divides replicas by the room of clusters.
	// +optional
	ReplicaRequirements *ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Parts of the resource with replicas of their own. Not supported.
	// +optional
	Components []Component `json:"components,omitempty"`

	// Clusters that the resource is moving away from. Not supported.
	// +optional
	GracefulEvictionTasks []GracefulEvictionTask `json:"gracefulEvictionTasks,omitempty"`

	// How the resource moves away from clusters that fail. Not supported.
	// +optional
	Failover *policyv1alpha1.FailoverBehavior `json:"failover,omitempty"`

	// When its clusters were last asked to be chosen anew. Not supported.
	// +optional
	RescheduleTriggeredAt *metav1.Time `json:"rescheduleTriggeredAt,omitempty"`

	// Whether the resource is placed before others. Not supported.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`

	// Which workloads go to the same clusters, or to different ones. Not supported.
	// +optional
	WorkloadAffinityGroups *WorkloadAffinityGroups `json:"workloadAffinityGroups,omitempty"`
}

// Suspension is what is put off.
type Suspension struct {
	policyv1alpha1.Suspension `json:",inline"`

	// Choose no clusters. Not supported.
	// +optional
	Scheduling *bool `json:"scheduling,omitempty"`
}

// ObjectReference names a resource of the hub.
type ObjectReference struct {
	// Group and version of its API.
	// +required
	APIVersion string `json:"apiVersion"`
	// Its kind.
	// +required
	Kind string `json:"kind"`
	// Its namespace, if it is in one.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Its name.
	// +required
	Name string `json:"name"`
	// UID of the resource.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Its resourceVersion. Not set by Fairlead.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// TargetCluster is a cluster that a resource goes to.
type TargetCluster struct {
	// Name of the cluster.
	// +required
	Name string `json:"name"`

	// Replicas in the cluster, if the placement divides them.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// BindingSnapshot is the binding of a resource that requires another one, and its clusters.
type BindingSnapshot struct {
	// Its namespace, if it is in one.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Its name.
	// +required
	Name string `json:"name"`
	// The clusters that it goes to.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// ResourceBindingStatus is what was last seen of a binding.
type ResourceBindingStatus struct {
	// Generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Generation of the spec whose clusters were last chosen. Not set by Fairlead, which chooses them when it writes the spec.
	// +optional
	SchedulerObservedGeneration int64 `json:"schedulerObservedGeneration,omitempty"`

	// The group of placement.clusterAffinities that is used.
	// +optional
	SchedulerObservedAffinityName string `json:"schedulerObservingAffinityName,omitempty"`

	// When clusters were last chosen. Not set by Fairlead.
	// +optional
	LastScheduledTime *metav1.Time `json:"lastScheduledTime,omitempty"`

	// Version of the template that this status speaks of: a digest of what its user has set. A change of the status of the
	// template, or of a field that the API server assigns, makes no other version.
	// +optional
	TemplateVersion string `json:"templateVersion,omitempty"`

	// Scheduled: the clusters of the resource are known. FullyApplied: the resource is applied in all of them.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Status of the resource in each cluster.
	// +listType=map
	// +listMapKey=clusterName
	// +optional
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// AggregatedStatusItem is the status of a resource in one cluster.
type AggregatedStatusItem struct {
	// Name of the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	// Status of the object in the cluster.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Whether the object in the cluster is as the template says.
	// +optional
	Applied bool `json:"applied"`

	// Why the object is not applied, as a reason: that of the condition Applied of its Work. Until the Work has been reconciled, it is
	// Applying, or Finished for a Job or Pod that has finished for an earlier Work and does not run again.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Why the object is not applied, as a message that says what to do.
	// +optional
	AppliedMessage string `json:"appliedMessage,omitempty"`

	// Health of the object in the cluster, by its status.
	// +optional
	Health ResourceHealth `json:"health,omitempty"`
}

// ResourceHealth is the health of an object, by its status. That of most kinds is Unknown.
//
// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
type ResourceHealth string

// The states of health.
const (
	ResourceHealthy   ResourceHealth = "Healthy"
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	ResourceUnknown   ResourceHealth = "Unknown"
)

// The conditions of a binding, and their reasons.
const (
	ConditionScheduled    = "Scheduled"
	ConditionFullyApplied = "FullyApplied"
)

// ResourceBindingList is a list of ResourceBindings.
//
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceBinding `json:"items"`
}

// ClusterResourceBindingList is a list of ClusterResourceBindings.
//
// +kubebuilder:object:root=true
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceBinding `json:"items"`
}
