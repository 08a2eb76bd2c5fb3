package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// Materialize is one environment, in the version of the API that rolls out when it is asked to.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=materializes,shortName=mzs
// +kubebuilder:subresource:status
// +kubebuilder:deprecatedversion:warning="materialize.cloud/v1alpha1 Materialize is deprecated: use materialize.cloud/v1alpha2, which rolls out without requestRollout, and has rolloutStrategy for inPlaceRollout and serviceAccountAnnotations for environmentdIamRoleArn"
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

	// What should run.
	// +required
	Spec MaterializeSpec `json:"spec"`

	// What was last seen of it. Written by Fairlead only.
	// +optional
	Status MaterializeStatus `json:"status,omitzero"`
}

// MaterializeSpec is what should run. What is only here is kept in an annotation of v1alpha2.
type MaterializeSpec struct {
	v1alpha2.SharedSpec `json:",inline"`

	// Promotes the generation that waits, when it equals status.requestedRolloutHash. Empty and the nil UUID mean none.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ForcePromote string `json:"forcePromote,omitempty"`

	// Once asked for a rollout by a new UUID. A rollout starts by itself now, when the spec changes.
	// +optional
	RequestRollout v1alpha2.UUID `json:"requestRollout,omitempty"`

	// Once chose how a rollout takes over. See rolloutStrategy.
	// +optional
	InPlaceRollout bool `json:"inPlaceRollout,omitempty"`

	// AWS role of environmentd. It becomes the annotation eks.amazonaws.com/role-arn in serviceAccountAnnotations.
	// +optional
	EnvironmentdIamRoleArn string `json:"environmentdIamRoleArn,omitempty"`
}

// MaterializeStatus is what was last seen of an environment.
type MaterializeStatus struct {
	v1alpha2.SharedStatus `json:",inline"`

	// The requestRollout of the rollout that was last completed, before rollouts started by themselves.
	// +optional
	LastCompletedRolloutRequest v1alpha2.UUID `json:"lastCompletedRolloutRequest,omitempty"`

	// Hash of what was made for the environment, before rollouts started by themselves.
	// +optional
	ResourcesHash string `json:"resourcesHash,omitempty"`
}

// MaterializeList is a list of Materializes.
//
// +kubebuilder:object:root=true
type MaterializeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Materialize `json:"items"`
}
