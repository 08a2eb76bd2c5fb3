package forecast

import (
	"fmt"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

// Finding is something that a person has to look at, and what to do about it.
type Finding struct {
	// Object is a policy, as kind and namespace/name.
	Object string `json:"object"`
	Field  string `json:"field"`
	Why    string `json:"why"`
	Remedy string `json:"remedy,omitempty"`
	// New says that it is so only afterwards.
	New bool `json:"new,omitempty"`
}

// routesToLookAt are those that name values of the tag, with nothing beside it for the MeshService: unlike other policies they
// stay with it.
func routesToLookAt(policies []kumav1alpha1.Policy, mode model.Mode) []Finding {
	found := []Finding{}
	if mode == model.Disabled {
		return found
	}
	for _, p := range policies {
		entries := p.Entries()
		refs := make([]successor.Ref, len(entries))
		for i, e := range entries {
			refs[i] = successor.OfTarget(e.TargetRef)
		}
		mended := successor.Mended(refs, 0, true)
		for i, e := range entries {
			kind, backends := routing(e)
			if kind == "" || mended[i] {
				continue
			}
			look := func(field, tag string) {
				f := Finding{Object: fmt.Sprintf("%s %s/%s", kind, p.GetNamespace(), p.GetName()), Field: field, Remedy: remedy(tag)}
				f.Why = "it stays with kuma.io/service " + tag
				if mode == model.Exclusive {
					f.Why += ", which nobody calls in " + string(mode)
				}
				found = append(found, f)
			}
			if refs[i].Old() {
				look(fmt.Sprintf("spec.to[%d].targetRef", e.Index), e.TargetRef.Name)
			}
			for _, b := range backends {
				if successor.OfBackend(b.ref).Old() {
					look(fmt.Sprintf("spec.to[%d].rules[%d].default.backendRefs[%d]", e.Index, b.rule, b.index), b.ref.Name)
				}
			}
		}
	}
	return found
}

type backend struct {
	rule, index int
	ref         kumav1alpha1.BackendRef
}

// routing is the kind of the route that an entry is of, and where it sends; no kind, if it is of another policy.
func routing(e kumav1alpha1.Entry) (kind string, backends []backend) {
	add := func(rule int, refs []kumav1alpha1.BackendRef) {
		for i, ref := range refs {
			backends = append(backends, backend{rule, i, ref})
		}
	}
	switch to := e.Default.(type) {
	case *kumav1alpha1.MeshHTTPRouteTo:
		for i, rule := range to.Rules {
			add(i, rule.Default.BackendRefs)
		}
		return kumav1alpha1.MeshHTTPRouteKind, backends
	case *kumav1alpha1.MeshTCPRouteTo:
		for i, rule := range to.Rules {
			add(i, rule.Default.BackendRefs)
		}
		return kumav1alpha1.MeshTCPRouteKind, backends
	}
	return "", nil
}

// remedy says how to write what stands for a tag.
func remedy(tag string) string {
	labels, section := fmt.Sprintf("%s: %s", kumav1alpha1.LabelDisplayName, tag), "the sectionName of a port"
	if name, namespace, port, ok := model.ParseKubernetesTag(tag); ok {
		labels = fmt.Sprintf("%s: %s, %s: %s", kumav1alpha1.LabelDisplayName, name, kumav1alpha1.LabelNamespace, namespace)
		section = fmt.Sprintf("sectionName: \"%d\"", port)
	}
	return fmt.Sprintf("add the same for labels {%s} and %s, or for a MeshMultiZoneService", labels, section)
}
