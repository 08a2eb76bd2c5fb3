// Package v1alpha1 is the policy.karmada.io API: which resources of the hub go to which clusters.
//
// +groupName=policy.karmada.io
// +versionName=v1alpha1
// +kubebuilder:object:generate=true
package v1alpha1
