package forecast

import (
	"fmt"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
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

// routesToLookAt are those that name values of the tag: unlike other policies they stay with it.
func routesToLookAt(policies []kumav1alpha1.Policy, mode model.Mode) []Finding {
	found := []Finding{}
	if mode == model.Disabled {
		return found
	}
	for _, p := range policies {
		for _, e := range p.Entries() {
			kind, backends := routing(e)
			if kind == "" {
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
			if r := e.TargetRef; r.Labels == nil && r.SectionName == nil && meansTag(r.Kind, r.Name, r.Namespace) {
				look(fmt.Sprintf("spec.to[%d].targetRef", e.Index), r.Name)
			}
			for _, b := range backends {
				if r := b.ref; r.Labels == nil && r.SectionName == nil && r.Port == nil && meansTag(r.Kind, r.Name, r.Namespace) {
					look(fmt.Sprintf("spec.to[%d].rules[%d].default.backendRefs[%d]", e.Index, b.rule, b.index), r.Name)
				}
			}
		}
	}
	return found
}

// meansTag says whether a reference that has neither labels nor a port is to a tag. With a namespace it is to an object, unless no
// object can have that name.
func meansTag(kind, name, namespace string) bool {
	if kind != kumav1alpha1.MeshServiceKind && kind != kumav1alpha1.MeshServiceSubsetKind {
		return false
	}
	_, _, _, kubernetes := model.ParseKubernetesTag(name)
	return kubernetes || (name != "" && namespace == "")
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
