package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "fairlead.dev", Version: "v1alpha1"}

// The kinds of this group.
const (
	MeshConsumerSliceKind = "MeshConsumerSlice"
	MeshServingReportKind = "MeshServingReport"
)

// AddToScheme makes a scheme know the types in this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &MeshConsumerSlice{}, &MeshConsumerSliceList{}, &MeshServingReport{}, &MeshServingReportList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
