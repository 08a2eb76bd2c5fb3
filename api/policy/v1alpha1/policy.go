package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PropagationPolicy takes resources of its own namespace to clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=pp,categories=karmada-io
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="CONFLICT-RESOLUTION",type=string,JSONPath=".spec.conflictResolution",description="What becomes of what a cluster already runs under the same name."
// +kubebuilder:printcolumn:name="PRIORITY",type=integer,JSONPath=".spec.priority",description="Of several policies that select a resource, the one with the highest takes it."
// +kubebuilder:printcolumn:name="MATCHED",type=integer,JSONPath=".status.matched",description="How many resources it takes."
// +kubebuilder:printcolumn:name="APPLIED",type=integer,JSONPath=".status.applied",description="How many of them are applied everywhere."
// +kubebuilder:printcolumn:name="CONFLICTING",type=integer,JSONPath=".status.conflicting",description="How many of them some cluster already runs."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type PropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What goes where.
	// +required
	Spec PropagationSpec `json:"spec"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status PropagationStatus `json:"status,omitzero"`
}

// ClusterPropagationPolicy takes resources of any namespace, and of none, to clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cpp,categories=karmada-io
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="CONFLICT-RESOLUTION",type=string,JSONPath=".spec.conflictResolution",description="What becomes of what a cluster already runs under the same name."
// +kubebuilder:printcolumn:name="PRIORITY",type=integer,JSONPath=".spec.priority",description="Of several policies that select a resource, the one with the highest takes it."
// +kubebuilder:printcolumn:name="MATCHED",type=integer,JSONPath=".status.matched",description="How many resources it takes."
// +kubebuilder:printcolumn:name="APPLIED",type=integer,JSONPath=".status.applied",description="How many of them are applied everywhere."
// +kubebuilder:printcolumn:name="CONFLICTING",type=integer,JSONPath=".status.conflicting",description="How many of them some cluster already runs."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type ClusterPropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What goes where.
	// +required
	Spec PropagationSpec `json:"spec"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status PropagationStatus `json:"status,omitzero"`
}

// PropagationSpec is what goes where, and how.
type PropagationSpec struct {
	// The resources that the policy takes: those that any of these selects.
	// +kubebuilder:validation:MinItems=1
	// +required
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// The clusters that they go to.
	// +optional
	Placement Placement `json:"placement,omitzero"`

	// What becomes of an object that a cluster already runs under the same name: Abort leaves it alone and does not go on
	// there, Overwrite takes it over. The annotation work.karmada.io/conflict-resolution of a resource comes before this.
	// +kubebuilder:default=Abort
	// +optional
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`

	// Of several policies that select a resource, the one with the highest takes it.
	// +kubebuilder:default=0
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// Take along what the selected resources need to run: ConfigMaps, Secrets, ServiceAccounts and PersistentVolumeClaims
	// that their pods refer to.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// What is put off.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// Leave what runs in the clusters alone, and unmarked, when the resource is deleted on the hub.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// Kept as it is written. Fairlead itself chooses the clusters.
	// +kubebuilder:default=default-scheduler
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`
}

// ConflictResolution is what becomes of an object that a cluster already runs.
//
// +kubebuilder:validation:Enum=Abort;Overwrite
type ConflictResolution string

// The resolutions of a conflict.
const (
	// ConflictAbort leaves it alone.
	ConflictAbort ConflictResolution = "Abort"
	// ConflictOverwrite takes it over.
	ConflictOverwrite ConflictResolution = "Overwrite"
)

// ResourceSelector selects resources of one kind.
type ResourceSelector struct {
	// Group and version, as in a manifest: apps/v1.
	// +kubebuilder:validation:MinLength=1
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind, as in a manifest: Deployment.
	// +kubebuilder:validation:MinLength=1
	// +required
	Kind string `json:"kind"`

	// Namespace of the resources. Of a PropagationPolicy it can only be its own, which is what it is when left out.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the one resource that is meant. With a name, labels do not count.
	// +optional
	Name string `json:"name,omitempty"`

	// Labels of the resources. Without name and labels, all of the kind are meant.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// Placement is which clusters resources go to, and how many replicas each gets.
type Placement struct {
	// The clusters; all, if it is left out.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// How replicas are spread. The same number everywhere, if it is left out.
	// +optional
	ReplicaScheduling *ReplicaScheduling `json:"replicaScheduling,omitempty"`
}

// Divides tells whether each cluster gets a part of the replicas.
func (p *Placement) Divides() bool {
	return p.ReplicaScheduling != nil && p.ReplicaScheduling.ReplicaSchedulingType == ReplicasDivided
}

// ClusterAffinity selects clusters. All that is given has to hold.
type ClusterAffinity struct {
	// Labels of the clusters.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// Names of the clusters.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`

	// Names of clusters that are not meant, whatever else is said.
	// +optional
	ExcludeClusters []string `json:"exclude,omitempty"`
}

// ReplicaScheduling is how replicas are spread over clusters.
//
// +kubebuilder:validation:XValidation:rule="self.replicaSchedulingType != 'Divided' || self.replicaDivisionPreference == 'Weighted'",message="replicas can be divided by weights only: set replicaDivisionPreference to Weighted"
type ReplicaScheduling struct {
	// Duplicated gives every cluster as many as the resource has, Divided spreads them.
	// +kubebuilder:validation:Enum=Duplicated;Divided
	// +kubebuilder:default=Duplicated
	// +optional
	ReplicaSchedulingType ReplicaSchedulingType `json:"replicaSchedulingType,omitempty"`

	// How they are divided: by weights.
	// +kubebuilder:validation:Enum=Weighted
	// +kubebuilder:default=Weighted
	// +optional
	ReplicaDivisionPreference string `json:"replicaDivisionPreference,omitempty"`

	// The weights. Without any, all clusters weigh the same.
	// +optional
	WeightPreference *ClusterPreferences `json:"weightPreference,omitempty"`
}

// ReplicaSchedulingType is how replicas are spread.
type ReplicaSchedulingType string

// The ways to spread replicas.
const (
	ReplicasDuplicated ReplicaSchedulingType = "Duplicated"
	ReplicasDivided    ReplicaSchedulingType = "Divided"
)

// ClusterPreferences are weights of clusters.
type ClusterPreferences struct {
	// Weights of the clusters that each of these selects. A cluster that none selects gets no replica.
	// +optional
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`
}

// StaticClusterWeight is the weight of some clusters.
type StaticClusterWeight struct {
	// The clusters that are meant.
	// +required
	TargetCluster ClusterAffinity `json:"targetCluster"`

	// Their weight.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Weight int64 `json:"weight"`
}

// Suspension is what is put off.
type Suspension struct {
	// Prepare everything, and write nothing to any cluster.
	// +optional
	Dispatching *bool `json:"dispatching,omitempty"`
}

// PropagationStatus is what was last seen of the policy.
type PropagationStatus struct {
	// Generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// How many resources the policy takes.
	// +optional
	Matched int32 `json:"matched"`

	// How many of them are as they should be in every cluster.
	// +optional
	Applied int32 `json:"applied"`

	// How many of them some cluster already runs, and are left alone there.
	// +optional
	Conflicting int32 `json:"conflicting"`

	// How many of them some cluster did not accept.
	// +optional
	Failed int32 `json:"failed"`

	// Ready: all that the policy takes is applied everywhere.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionReady of a policy: all that it takes is applied everywhere.
const ConditionReady = "Ready"

// PropagationPolicyList is a list of PropagationPolicies.
//
// +kubebuilder:object:root=true
type PropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PropagationPolicy `json:"items"`
}

// ClusterPropagationPolicyList is a list of ClusterPropagationPolicies.
//
// +kubebuilder:object:root=true
type ClusterPropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPropagationPolicy `json:"items"`
}
