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

	// Whether the policy takes resources from policies of a lower priority: Never, which is the default, or Always. Of a ClusterPropagationPolicy, only
	// from other ClusterPropagationPolicies.
	// +kubebuilder:validation:Enum=Always;Never
	// +optional
	Preemption PreemptionBehavior `json:"preemption,omitempty"`

	// Take along what the selected resources need to run: ConfigMaps, Secrets, ServiceAccounts and PersistentVolumeClaims
	// that their pods refer to.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// The former name of propagateDeps. Not supported if true: set propagateDeps.
	// +optional
	Association bool `json:"association,omitempty"`

	// When changes of the policy take effect: at once, if it is left out. Lazy: for each resource, when that changes next.
	// +kubebuilder:validation:Enum=Lazy
	// +optional
	ActivationPreference ActivationPreference `json:"activationPreference,omitempty"`

	// What is put off.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// Leave what runs in the clusters alone, and unmarked, when the resource is deleted on the hub.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// Whether objects stay in the clusters whose deletion would delete more than themselves: CustomResourceDefinitions with
	// their custom resources, Namespaces with all that is in them, and PersistentVolumeClaims with their data. Enabled, which
	// is what it is when left out, leaves them alone, and unmarked, when the resource is deleted on the hub or no longer goes
	// to a cluster. Disabled deletes them like all others.
	// +optional
	DeletionProtection DeletionProtection `json:"deletionProtection,omitempty"`

	// Kept as it is written. Fairlead itself chooses the clusters.
	// +kubebuilder:default=default-scheduler
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// OverridePolicies that have to exist before the policy takes effect. Not supported.
	// +optional
	DependentOverrides []string `json:"dependentOverrides,omitempty"`

	// How resources move away from clusters that fail. Not supported.
	// +optional
	Failover *FailoverBehavior `json:"failover,omitempty"`

	// Which resources are placed first. Not supported.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`
}

// PreemptionBehavior is whether a policy takes resources from others.
type PreemptionBehavior string

// The ways to preempt.
const (
	PreemptAlways PreemptionBehavior = "Always"
	PreemptNever  PreemptionBehavior = "Never"
)

// ActivationPreference is when changes of a policy take effect.
type ActivationPreference string

// ActivationLazy has a resource follow its policy when the resource itself changes.
const ActivationLazy ActivationPreference = "Lazy"

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

// DeletionProtection is whether objects stay whose deletion would delete more than themselves.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type DeletionProtection string

// The values of deletionProtection.
const (
	// DeletionProtectionEnabled leaves them in the clusters.
	DeletionProtectionEnabled DeletionProtection = "Enabled"
	// DeletionProtectionDisabled deletes them like all others.
	DeletionProtectionDisabled DeletionProtection = "Disabled"
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

// Suspension is what is put off.
type Suspension struct {
	// Prepare everything, and write nothing to any cluster.
	// +optional
	Dispatching *bool `json:"dispatching,omitempty"`

	// Prepare everything, and write nothing to some clusters.
	// +optional
	DispatchingOnClusters *SuspendClusters `json:"dispatchingOnClusters,omitempty"`
}

// SuspendClusters are clusters to which nothing is written.
type SuspendClusters struct {
	// Names of the clusters.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
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

	// How many resources an aborted policy has released. Matched has those that it has yet to release.
	// +optional
	Released int32 `json:"released,omitempty"`

	// Ready: all that the policy takes is applied everywhere. Scheduled is there, and False, while the policy has a field that is not
	// supported.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The conditions of a policy.
const (
	// ConditionReady tells whether all that the policy takes is applied everywhere.
	ConditionReady = "Ready"
	// ConditionScheduled is False while the policy has a field that is not supported, and absent otherwise.
	ConditionScheduled = "Scheduled"
)

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
