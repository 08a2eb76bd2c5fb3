package operator

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	sailoperatorv1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// NewScheme knows the kinds that the passages work with, and no others: a client then refuses the rest.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := sailoperatorv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register %s: %w", sailoperatorv1.GroupVersion, err)
	}
	return scheme, nil
}
