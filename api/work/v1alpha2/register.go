package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "work.karmada.io", Version: "v1alpha2"}

// The kinds of this package.
const (
	ResourceBindingKind        = "ResourceBinding"
	ClusterResourceBindingKind = "ClusterResourceBinding"
)

// AddToScheme makes a scheme know the types in this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ResourceBinding{}, &ResourceBindingList{}, &ClusterResourceBinding{}, &ClusterResourceBindingList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
