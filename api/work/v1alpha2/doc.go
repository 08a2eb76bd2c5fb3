// Package v1alpha2 is the work.karmada.io API of bindings: a resource of the hub and the clusters that it goes to.
//
// +groupName=work.karmada.io
// +versionName=v1alpha2
// +kubebuilder:object:generate=true
package v1alpha2
