// Package v1alpha1 serves IstioRevisionTag under the version it was first published with.
//
// +groupName=sailoperator.io
// +versionName=v1alpha1
// +kubebuilder:object:generate=true
package v1alpha1
