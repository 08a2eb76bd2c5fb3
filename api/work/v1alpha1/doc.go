// Package v1alpha1 is the work.karmada.io API of Works: what one cluster is to run.
//
// +groupName=work.karmada.io
// +versionName=v1alpha1
// +kubebuilder:object:generate=true
package v1alpha1
