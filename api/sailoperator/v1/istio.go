package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Istio is a control plane as its users see it. Behind it stand one or more IstioRevisions, of which one is active.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=istio-io
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="Namespace",type=string,priority=1,JSONPath=".spec.namespace",description="Where the control plane runs."
// +kubebuilder:printcolumn:name="Profile",type=string,priority=1,JSONPath=".spec.profile",description="The profile its values start from."
// +kubebuilder:printcolumn:name="Revisions",type=integer,JSONPath=".status.revisions.total",description="How many revisions it has."
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.revisions.ready",description="How many of them are ready."
// +kubebuilder:printcolumn:name="In use",type=integer,JSONPath=".status.revisions.inUse",description="How many of them something refers to."
// +kubebuilder:printcolumn:name="Active Revision",type=string,JSONPath=".status.activeRevisionName",description="The revision that workloads belong on."
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.state",description="Healthy, or what is wrong."
// +kubebuilder:printcolumn:name="Migration",type=string,JSONPath=".status.workloadMigration.state",description="How far its workloads are on their way to the active revision."
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=".spec.version",description="The version asked for."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,34}[a-z0-9])?$')",optionalOldSelf=true,message="metadata.name must consist of at most 36 lower-case letters, digits and '-': it leads the names of the revisions, before the version"
type Istio struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the control plane should be.
	// +kubebuilder:default={}
	// +optional
	Spec IstioSpec `json:"spec,omitzero"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status IstioStatus `json:"status,omitzero"`
}

// IstioSpec is the control plane that is wanted.
//
// +kubebuilder:validation:XValidation:rule="!has(self.values) || !has(self.values.global) || !has(self.values.global.istioNamespace) || self.values.global.istioNamespace == self.__namespace__",fieldPath=".values.global.istioNamespace",message="must be the same as spec.namespace; it can be left out"
type IstioSpec struct {
	// Version of Istio: an exact one such as v1.24.0, or v1.24-latest for the newest patch there is of 1.24.
	// Left out: the newest version there is.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^v(0|[1-9][0-9]{0,8})[.](0|[1-9][0-9]{0,8})([.](0|[1-9][0-9]{0,8})(-(0|[1-9][0-9]*|[0-9]*[a-z][0-9a-z]*)([.-](0|[1-9][0-9]*|[0-9]*[a-z][0-9a-z]*))*)?|-latest)$')",message="must be an exact version such as v1.24.0 or v1.25.0-rc.1, or the newest patch of one such as v1.24-latest"
	// +optional
	Version string `json:"version,omitempty"`

	// How a new version takes over from the one that runs.
	// +kubebuilder:default={}
	// +optional
	UpdateStrategy IstioUpdateStrategy `json:"updateStrategy,omitzero"`

	// Name of the profile, as known to Istio's charts, that the values start from.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Profile string `json:"profile,omitempty"`

	// Namespace that istiod runs in. It must exist, and cannot be changed later.
	// +kubebuilder:default=istio-system
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: create another Istio in the new namespace instead"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Helm values for Istio's charts, applied over the profile.
	// Fairlead itself sets revision and global.istioNamespace.
	// +kubebuilder:validation:XValidation:rule="!has(self.revision) || size(self.revision) == 0",fieldPath=".revision",message="must be left out: Fairlead names the revisions"
	// +optional
	Values Values `json:"values,omitzero"`
}

// IstioStatus is what was last seen of the control plane.
type IstioStatus struct {
	// Generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Reconciled: the active revision has been written as the spec asks.
	// Ready: the control plane of the active revision serves.
	// ResolvedRefs, only while it is false: labels in the cluster name revisions or tags that do not exist.
	// WorkloadsMigrated: no Deployment is left to be moved to the active revision.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Healthy, or the reason of the condition that is not as it should be.
	// +optional
	State State `json:"state,omitempty"`

	// IstioRevision that workloads belong on.
	// +optional
	ActiveRevisionName string `json:"activeRevisionName,omitempty"`

	// How many revisions belong to this Istio.
	// +optional
	Revisions *RevisionSummary `json:"revisions,omitempty"`

	// Progress of moving workloads to the active revision.
	// Absent unless updateStrategy.workloadMigration.strategy is set.
	// +optional
	WorkloadMigration *WorkloadMigrationStatus `json:"workloadMigration,omitempty"`
}

// RevisionSummary counts the revisions of an Istio.
type RevisionSummary struct {
	// All of them, active or not.
	// +optional
	Total int32 `json:"total"`

	// Those whose control plane serves.
	// +optional
	Ready int32 `json:"ready"`

	// Those that a workload, a namespace or a tag refers to.
	// +optional
	InUse int32 `json:"inUse"`
}

// IstioList is a list of Istios.
//
// +kubebuilder:object:root=true
type IstioList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Istio `json:"items"`
}
