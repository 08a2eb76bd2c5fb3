package policy

import (
	"fmt"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// AnnotationConflictResolution on a template overrides conflictResolution of the policy.
const AnnotationConflictResolution = "work.karmada.io/conflict-resolution"

// The values of the annotation.
const (
	resolutionAbort     = "abort"
	resolutionOverwrite = "overwrite"
)

// ResolveConflict is the conflict resolution by the annotation of a template, or else by its policy; the default is Abort. With the
// error, which is that of an invalid annotation, the resolution of the policy applies.
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

// ConflictAnnotation is the value of the annotation for a resolution.
func ConflictAnnotation(resolution policyv1alpha1.ConflictResolution) string {
	if resolution == policyv1alpha1.ConflictOverwrite {
		return resolutionOverwrite
	}
	return resolutionAbort
}
