// Package v1alpha1 is the fairlead.dev API: what Fairlead records beside the resources of others.
//
// +groupName=fairlead.dev
// +versionName=v1alpha1
// +kubebuilder:object:generate=true
package v1alpha1
