package operator

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	materializev1alpha2 "github.com/fairlead/fairlead/api/materialize/v1alpha2"
	sailoperatorv1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// NewScheme knows the kinds that the passages work with, and no others: a client then refuses the rest.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := sailoperatorv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register %s: %w", sailoperatorv1.GroupVersion, err)
	}
	if err := materializev1alpha2.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register %s: %w", materializev1alpha2.GroupVersion, err)
	}
	scheme.AddKnownTypes(appsv1.SchemeGroupVersion, &appsv1.Deployment{}, &appsv1.DeploymentList{})
	metav1.AddToGroupVersion(scheme, appsv1.SchemeGroupVersion)
	return scheme, nil
}
