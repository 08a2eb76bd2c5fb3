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
func ActivatedVersion(binding *Binding) string {
	return parseTemplateVersion(binding.GetAnnotations()[AnnotationActivated]).Version
}

// HasChanged tells whether a template has changed since a Lazy policy last took effect. Version is its TemplateVersion.
func HasChanged(binding *Binding, version string) bool {
	had, has := parseTemplateVersion(binding.GetAnnotations()[AnnotationActivated]), parseTemplateVersion(version)
	if had.Content == "" || has.Content == "" {
		// Earlier versions of the operator have recorded nothing else.
		return had.Version != has.Version
	}
	return had.Metadata != has.Metadata || had.Content != has.Content && (had.Generation != has.Generation || has.Generation == "")
}

// TemplateVersion is what changes of a template with what its users change.
type TemplateVersion struct {
	// Version is that of the manifests of Works.
	Version string
	// Generation is empty for kinds without a generation. All content that it does not change with was not written.
	Generation        string
	Metadata, Content string
}

func (v TemplateVersion) String() string {
	return strings.Join([]string{v.Version, v.Generation, v.Metadata, v.Content}, " ")
}

func parseTemplateVersion(text string) (v TemplateVersion) {
	parts := strings.Split(text, " ")
	if v.Version = parts[0]; len(parts) == 4 {
		v.Generation, v.Metadata, v.Content = parts[1], parts[2], parts[3]
	}
	return v
}

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
