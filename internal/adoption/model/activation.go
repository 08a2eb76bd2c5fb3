package model

import (
	"strings"

	"github.com/fairlead/fairlead/internal/passage"
)

// SetActivation records on a binding with which version of the template its Lazy policy last took effect, and whether the policy has
// changed since. A policy that is not Lazy has no version.
func SetActivation(binding *Binding, version string, deferred bool) {
	recorded := map[string]string{}
	if version != "" {
		recorded[AnnotationActivated] = version
	}
	if deferred {
		recorded[AnnotationDeferred] = "true"
	}
	binding.SetAnnotations(MergeKeys(binding.GetAnnotations(), []string{AnnotationActivated, AnnotationDeferred}, recorded))
}

// ActivatedVersion is the version of the template with which a Lazy policy last took effect, empty if none has.
func ActivatedVersion(binding *Binding) string { return binding.GetAnnotations()[AnnotationActivated] }

// IsDeferred tells whether the policy of a binding takes effect only when the template changes.
func IsDeferred(binding *Binding) bool { return binding.GetAnnotations()[AnnotationDeferred] == "true" }

// DeferredReason is why a resource does not follow its policy yet, nil if it does. A resource that no policy has placed goes to no
// cluster meanwhile, unless others require it.
func DeferredReason(binding *Binding) *passage.Reason {
	if !IsDeferred(binding) {
		return nil
	}
	policy := strings.TrimPrefix(ClaimOf(binding).String(), "/")
	reason := passage.Because(ReasonDeferred, "the resource follows the earlier policy until its template changes, because spec.activationPreference of policy %s is Lazy", policy)
	if binding.Spec.Placement == nil {
		reason = passage.Because(ReasonDeferred, "policy %s does not place the resource until its template changes, because spec.activationPreference is Lazy", policy)
	}
	return &reason
}
