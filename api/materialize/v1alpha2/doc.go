// Package v1alpha2 is the materialize.cloud API in which a rollout starts when the spec changes.
//
// +groupName=materialize.cloud
// +versionName=v1alpha2
// +kubebuilder:object:generate=true
package v1alpha2
