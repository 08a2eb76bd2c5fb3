package successor

import (
	"fmt"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// TagReference is a reference of a route to a tag without an entry for the MeshService that replaces it: other policies for
// a tag apply to its MeshService, routes do not.
type TagReference struct {
	// Route is its kind and namespace/name, and Field the path to the reference.
	Route, Field string
	Tag          string
	// Backend says that it is a backend of the route, not its target; OfTag, that the route targets a tag.
	Backend, OfTag bool
}

// Why describes the reference in a mode.
func (s TagReference) Why(mode model.Mode) string {
	why := "the route targets kuma.io/service " + s.Tag
	if mode == model.Exclusive {
		why += ", which no proxy reaches in mode " + string(mode)
	}
	return why
}

// Remedy says how to refer to the MeshService.
func (s TagReference) Remedy() string {
	labels, section := fmt.Sprintf("%s: %s", kumav1alpha1.LabelDisplayName, s.Tag), "the sectionName of a port"
	if name, namespace, port, ok := model.ParseKubernetesTag(s.Tag); ok {
		labels = fmt.Sprintf("%s: %s, %s: %s", kumav1alpha1.LabelDisplayName, name, kumav1alpha1.LabelNamespace, namespace)
		section = fmt.Sprintf("sectionName: \"%d\"", port)
	}
	return fmt.Sprintf("add an entry for labels {%s} and %s, or for a MeshMultiZoneService", labels, section)
}

// TagReferencesIn returns the tag references of a policy; none, if it is not a route.
func TagReferencesIn(p kumav1alpha1.Policy) []TagReference {
	entries := p.Entries()
	refs := make([]Ref, len(entries))
	for i, e := range entries {
		refs[i] = OfTarget(e.TargetRef)
	}
	var found []TagReference
	converted := Converted(refs, 0, true)
	for i, e := range entries {
		kind, rules := model.RouteBackends(e.Default)
		if kind == "" || converted[i] {
			continue
		}
		route := fmt.Sprintf("%s %s/%s", kind, p.GetNamespace(), p.GetName())
		ofTag := refs[i].followsTag()
		if ofTag {
			found = append(found, TagReference{Route: route, Field: fmt.Sprintf("spec.to[%d].targetRef", e.Index), Tag: e.TargetRef.Name, OfTag: true})
		}
		for rule, backends := range rules {
			for j, ref := range backends {
				if OfBackend(ref).followsTag() {
					field := fmt.Sprintf("spec.to[%d].rules[%d].default.backendRefs[%d]", e.Index, rule, j)
					found = append(found, TagReference{Route: route, Field: field, Tag: ref.Name, Backend: true, OfTag: ofTag})
				}
			}
		}
	}
	return found
}
