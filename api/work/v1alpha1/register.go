package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "work.karmada.io", Version: "v1alpha1"}

// WorkKind is the one kind of this package.
const WorkKind = "Work"

// AddToScheme makes a scheme know the types in this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Work{}, &WorkList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
