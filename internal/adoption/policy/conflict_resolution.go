package policy

import (
	"fmt"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// AnnotationConflictResolution on a resource of the hub comes before what its policy says.
const AnnotationConflictResolution = "work.karmada.io/conflict-resolution"

// The values of the annotation.
const (
	resolutionAbort     = "abort"
	resolutionOverwrite = "overwrite"
)

// ResolveConflict is what becomes of an object that a cluster already runs: as the resource says, or else as the policy does, and
// nothing unless one of them asks for it. The error is what the resource says that means nothing.
func ResolveConflict(policy policyv1alpha1.ConflictResolution, annotation string) (policyv1alpha1.ConflictResolution, error) {
	switch annotation {
	case resolutionAbort:
		return policyv1alpha1.ConflictAbort, nil
	case resolutionOverwrite:
		return policyv1alpha1.ConflictOverwrite, nil
	}
	resolution := policyv1alpha1.ConflictAbort
	if policy == policyv1alpha1.ConflictOverwrite {
		resolution = policy
	}
	if annotation != "" {
		return resolution, fmt.Errorf("annotation %s is %q: write %q or %q, or remove the annotation", AnnotationConflictResolution, annotation,
			resolutionAbort, resolutionOverwrite)
	}
	return resolution, nil
}

// ConflictAnnotation is how a resolution is written on a manifest.
func ConflictAnnotation(resolution policyv1alpha1.ConflictResolution) string {
	if resolution == policyv1alpha1.ConflictOverwrite {
		return resolutionOverwrite
	}
	return resolutionAbort
}
