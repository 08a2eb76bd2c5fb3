package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// IstioRevision is one installed control plane of one version. An Istio makes its own; one can also be made by hand.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=istiorev,categories=istio-io
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="Namespace",type=string,priority=1,JSONPath=".spec.namespace",description="Where the control plane runs."
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether the control plane serves."
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.state",description="Healthy, or what is wrong."
// +kubebuilder:printcolumn:name="In use",type=string,JSONPath=".status.conditions[?(@.type==\"InUse\")].status",description="Whether anything refers to it."
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=".spec.version",description="The version installed."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,44}[a-z0-9])?$')",optionalOldSelf=true,message="metadata.name must consist of at most 46 lower-case letters, digits and '-': it becomes part of the names of istiod's Service and Helm release"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.values) || !has(self.spec.values.revision) || (self.metadata.name == 'default' ? size(self.spec.values.revision) == 0 : self.spec.values.revision == self.metadata.name)",fieldPath=".spec.values.revision",message="must be the same as metadata.name, or empty where that is 'default'; it can be left out"
type IstioRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is installed.
	// +required
	Spec IstioRevisionSpec `json:"spec"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status IstioRevisionStatus `json:"status,omitzero"`
}

// IstioRevisionSpec is the control plane to install.
//
// +kubebuilder:validation:XValidation:rule="!has(self.values) || !has(self.values.global) || !has(self.values.global.istioNamespace) || self.values.global.istioNamespace == self.__namespace__",fieldPath=".values.global.istioNamespace",message="must be the same as spec.namespace; it can be left out"
type IstioRevisionSpec struct {
	// Exact version of Istio, such as v1.24.0.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^v(0|[1-9][0-9]{0,8})[.](0|[1-9][0-9]{0,8})[.](0|[1-9][0-9]{0,8})(-(0|[1-9][0-9]*|[0-9]*[a-z][0-9a-z]*)([.-](0|[1-9][0-9]*|[0-9]*[a-z][0-9a-z]*))*)?$')",message="must be an exact version such as v1.24.0 or v1.25.0-rc.1"
	// +required
	Version string `json:"version"`

	// Namespace that istiod runs in. It must exist, and cannot be changed later.
	// +kubebuilder:default=istio-system
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: create another IstioRevision in the new namespace instead"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Helm values for Istio's charts.
	// Fairlead itself sets revision and global.istioNamespace; given here, they must agree with name and namespace.
	// +optional
	Values Values `json:"values,omitzero"`
}

// IstioRevisionStatus is what was last seen of the installed control plane.
type IstioRevisionStatus struct {
	// Generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Reconciled: the charts are installed as the spec asks.
	// Ready: istiod serves.
	// InUse: a workload, a namespace or a tag refers to the revision.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Healthy, or the reason of the condition that is not as it should be.
	// +optional
	State State `json:"state,omitempty"`

	// The charts that the control plane was installed from. A chart that changes under its version is refused.
	// +listType=map
	// +listMapKey=name
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Charts []ChartDigest `json:"charts,omitempty"`
}

// ChartDigest is the content of a chart of one version.
type ChartDigest struct {
	// Name of the chart: istiod or base.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Name string `json:"name"`

	// Version of Istio.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Version string `json:"version"`

	// SHA-256 digest of the content of the chart, which is the same for a directory and an archive.
	// +kubebuilder:validation:MaxLength=128
	// +required
	Digest string `json:"digest"`
}

// MaxChartDigests is how many charts a status records: the oldest make room for new ones.
const MaxChartDigests = 64

// IstioRevisionList is a list of IstioRevisions.
//
// +kubebuilder:object:root=true
type IstioRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IstioRevision `json:"items"`
}
