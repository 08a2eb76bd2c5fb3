package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// ReplicaRequirements are what one replica needs.
type ReplicaRequirements struct {
	ComponentReplicaRequirements `json:",inline"`

	// Namespace of the replica.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// ComponentReplicaRequirements are what one replica of a component needs.
type ComponentReplicaRequirements struct {
	// The nodes that it runs on.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// The resources that it requests.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// Its priority class.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// NodeClaim is which nodes a replica runs on.
type NodeClaim struct {
	// The nodes that it may run on.
	// +optional
	HardNodeAffinity *corev1.NodeSelector `json:"hardNodeAffinity,omitempty"`

	// Labels of the nodes.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Taints of nodes that it tolerates.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Component is a part of a resource with replicas of its own.
type Component struct {
	// Its name.
	// +required
	Name string `json:"name"`

	// How many replicas it has.
	// +required
	Replicas int32 `json:"replicas"`

	// What one of them needs.
	// +optional
	ReplicaRequirements *ComponentReplicaRequirements `json:"replicaRequirements,omitempty"`
}

// GracefulEvictionTask is a cluster that a resource is moving away from.
type GracefulEvictionTask struct {
	// The cluster.
	// +required
	FromCluster string `json:"fromCluster"`

	// How the resource is removed from the cluster.
	// +optional
	PurgeMode policyv1alpha1.PurgeMode `json:"purgeMode,omitempty"`

	// How many replicas move.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Why, as a reason.
	// +required
	Reason string `json:"reason"`

	// Why, as a message.
	// +optional
	Message string `json:"message,omitempty"`

	// Who asked for it.
	// +required
	Producer string `json:"producer"`

	// How long it may take.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// Leave the resource in the cluster until somebody removes this.
	// +optional
	SuppressDeletion *bool `json:"suppressDeletion,omitempty"`

	// The labels that the resource takes along.
	// +optional
	PreservedLabelState map[string]string `json:"preservedLabelState,omitempty"`

	// When it was asked for.
	// +optional
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`

	// The clusters of the resource before.
	// +optional
	ClustersBeforeFailover []string `json:"clustersBeforeFailover,omitempty"`
}

// SchedulePriority is whether a resource is placed before others.
type SchedulePriority struct {
	// The higher, the sooner.
	// +optional
	Priority int32 `json:"priority,omitempty"`
}

// WorkloadAffinityGroups are the groups of workloads that a resource belongs to.
type WorkloadAffinityGroups struct {
	// Workloads that go to the same clusters.
	// +optional
	AffinityGroup string `json:"affinityGroup,omitempty"`

	// Workloads that go to different clusters.
	// +optional
	AntiAffinityGroup string `json:"antiAffinityGroup,omitempty"`
}
