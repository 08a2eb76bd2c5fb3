// Package v1alpha1 is the cluster.karmada.io API: the clusters that have joined a hub.
//
// +groupName=cluster.karmada.io
// +versionName=v1alpha1
// +kubebuilder:object:generate=true
package v1alpha1
