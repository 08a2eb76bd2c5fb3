// Package v1alpha1 is the materialize.cloud API in which a rollout starts when somebody asks for it by a new UUID. It is
// served for those who have manifests of it, and stored no more.
//
// +groupName=materialize.cloud
// +versionName=v1alpha1
// +kubebuilder:object:generate=true
package v1alpha1
