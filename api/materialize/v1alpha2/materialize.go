package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Materialize is one environment: environmentd, which is rolled from generation to generation, and balancerd and the
// console in front of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=materializes,shortName=mzs
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="ImageRefRunning",type=string,JSONPath=".status.lastCompletedRolloutEnvironmentdImageRef",description="The environmentd image that serves."
// +kubebuilder:printcolumn:name="ImageRefToDeploy",type=string,JSONPath=".spec.environmentdImageRef",description="The environmentd image that the spec asks for."
// +kubebuilder:printcolumn:name="UpToDate",type=string,JSONPath=".status.conditions[?(@.type==\"UpToDate\")].status",description="Whether what serves is what the spec asks for."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.status) && has(oldSelf.status.activeGeneration) && oldSelf.status.activeGeneration > 0) || !(has(self.spec.environmentId) && self.spec.environmentId != '00000000-0000-0000-0000-000000000000') || ((has(oldSelf.spec.environmentId) && oldSelf.spec.environmentId != '00000000-0000-0000-0000-000000000000') ? self.spec.environmentId.lowerAscii() == oldSelf.spec.environmentId.lowerAscii() : !has(oldSelf.status.environmentId) || self.spec.environmentId.lowerAscii() == oldSelf.status.environmentId.lowerAscii())",message="spec.environmentId cannot change after the first rollout, because environmentd would no longer find the data of the environment: restore the value, or create another Materialize",reason=FieldValueForbidden,fieldPath=".spec.environmentId"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.status) && has(oldSelf.status.activeGeneration) && oldSelf.status.activeGeneration > 0) || (has(self.spec.environmentId) && self.spec.environmentId != '00000000-0000-0000-0000-000000000000') || !(has(oldSelf.spec.environmentId) && oldSelf.spec.environmentId != '00000000-0000-0000-0000-000000000000') || (has(oldSelf.status.environmentId) && oldSelf.status.environmentId.lowerAscii() == oldSelf.spec.environmentId.lowerAscii())",message="spec.environmentId cannot be removed after the first rollout, because the environment would get another ID and environmentd would no longer find its data: restore the value",reason=FieldValueForbidden,fieldPath=".spec.environmentId"
type Materialize struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What should run. A change rolls environmentd out, unless it is one of balancerd or the console alone.
	// +required
	Spec MaterializeSpec `json:"spec"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status MaterializeStatus `json:"status,omitzero"`
}

// MaterializeSpec is what should run.
type MaterializeSpec struct {
	SharedSpec `json:",inline"`

	// Promotes the generation that waits, when it equals status.requestedRolloutHash: at once, if need be without
	// waiting for it to catch up.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ForcePromote string `json:"forcePromote,omitempty"`
}

// MaterializeStatus is what was last seen of an environment.
type MaterializeStatus struct {
	SharedStatus `json:",inline"`
}

// MaterializeList is a list of Materializes.
//
// +kubebuilder:object:root=true
type MaterializeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Materialize `json:"items"`
}
