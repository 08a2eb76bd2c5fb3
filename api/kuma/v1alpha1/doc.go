// Package v1alpha1 is the kuma.io API: a mesh, its proxies, the services that they reach, and the policies between them.
//
// +groupName=kuma.io
// +versionName=v1alpha1
// +kubebuilder:object:generate=true
package v1alpha1
