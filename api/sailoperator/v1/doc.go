// Package v1 is the sailoperator.io API: Istio control planes, their revisions and stable tags for them.
//
// +groupName=sailoperator.io
// +versionName=v1
// +kubebuilder:object:generate=true
package v1
