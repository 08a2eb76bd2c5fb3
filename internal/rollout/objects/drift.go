package objects

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/kube"
)

const appliedPath = "metadata.annotations[" + v1alpha2.AnnotationApplied + "]"

// Drift says why an object has to be applied again, empty if it is as desired. Fields that are not desired explicitly are
// left to defaults and to other owners.
func Drift(want, have *unstructured.Unstructured) string {
	// Only the digest shows that a field was desired before and no longer is.
	asBefore := want.GetAnnotations()[v1alpha2.AnnotationApplied] == have.GetAnnotations()[v1alpha2.AnnotationApplied]
	field := kube.FirstDifference(want, have, appliedPath)
	switch {
	case field != "" && asBefore:
		return field + " was changed by another client"
	case field != "":
		return field + " changes"
	case !asBefore:
		return "fields are removed"
	}
	return ""
}
