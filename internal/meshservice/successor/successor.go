// Package successor resolves references of policies to values of kuma.io/service: which MeshService replaces the tag, and
// whether an entry for it exists.
package successor

import (
	"cmp"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Ref is a reference of a policy or a backend, as written.
type Ref struct {
	Kind        string            `yaml:"kind"`
	Name        string            `yaml:"name"`
	Namespace   string            `yaml:"namespace"`
	Labels      map[string]string `yaml:"labels"`
	SectionName string            `yaml:"sectionName"`
	Port        string            `yaml:"port"`
}

// Section is a port of a MeshService, in any zone.
type Section struct{ Name, Namespace, Port string }

// OfTarget is the reference of an entry.
func OfTarget(r kumav1alpha1.ToTargetRef) Ref {
	return Ref{Kind: r.Kind, Name: r.Name, Namespace: r.Namespace, Labels: r.Labels, SectionName: r.Section()}
}

// OfBackend is the reference of a route's backend.
func OfBackend(r kumav1alpha1.BackendRef) Ref {
	ref := Ref{Kind: r.Kind, Name: r.Name, Namespace: r.Namespace, Labels: r.Labels}
	if r.SectionName != nil {
		ref.SectionName = r.SectionName.String()
	}
	if r.Port != nil {
		ref.Port = strconv.Itoa(int(*r.Port))
	}
	return ref
}

// RefersToTag says whether a reference is to a tag, or may be.
func (r Ref) RefersToTag() bool {
	if r.Kind == kumav1alpha1.MeshServiceSubsetKind {
		return true
	}
	if r.Kind != kumav1alpha1.MeshServiceKind || r.SectionName != "" || r.Port != "" || r.Labels != nil {
		return false
	}
	return model.NamesTag(r.Name, r.Namespace != "")
}

// followsTag says whether a reference is resolved to a tag. Subsets are not.
func (r Ref) followsTag() bool {
	return r.RefersToTag() && r.Kind != kumav1alpha1.MeshServiceSubsetKind
}

// Successor returns the section that replaces the tag, or why it is not known. A tag without a port has the given one, if
// that is not zero.
func (r Ref) Successor(port uint16) (s Section, why string) {
	if r.Kind == kumav1alpha1.MeshServiceSubsetKind {
		return Section{}, "a MeshService has no subsets: create a MeshService for these tags, and add an entry for it"
	}
	s = Section{Name: r.Name}
	if name, namespace, number, ok := model.ParseKubernetesTag(r.Name); ok {
		s = Section{name, namespace, strconv.Itoa(int(number))}
	} else if port != 0 {
		s.Port = strconv.Itoa(int(port))
	}
	switch {
	case len(validation.IsDNS1123Label(s.Name)) > 0:
		return Section{}, "the value is not a valid MeshService name, so no MeshService replaces it"
	case s.Port == "":
		return s, "the value has no port: give --port, or add an entry with a sectionName"
	}
	return s, ""
}

// Converted says of each reference whether it is to a tag for which an entry for its MeshService exists. Each new entry
// counts for one old one.
func Converted(refs []Ref, port uint16, route bool) []bool {
	there := map[Section]int{}
	for _, r := range refs {
		if s, ok := r.section(); ok {
			there[s]++
		}
	}
	converted := make([]bool, len(refs))
	for i, r := range refs {
		if !r.RefersToTag() {
			continue
		}
		wanted, why := r.Successor(port)
		switch {
		case why == "" && there[wanted] > 0:
			there[wanted]--
			converted[i] = true
		case i+1 < len(refs):
			next := refs[i+1]
			converted[i] = wanted.Name != "" && (next.isSuccessorOf(r, wanted) || route && next.isMultiZone(wanted.Name))
		}
	}
	return converted
}

// section returns the section of a reference by labels.
func (r Ref) section() (s Section, ok bool) {
	if r.Kind != kumav1alpha1.MeshServiceKind || r.Name != "" || r.SectionName == "" {
		return Section{}, false
	}
	for label, value := range r.Labels {
		switch label {
		case kumav1alpha1.LabelDisplayName:
			s.Name = value
		case kumav1alpha1.LabelNamespace, kumav1alpha1.LabelKubernetesNamespace:
			s.Namespace = value
		default:
			return Section{}, false
		}
	}
	s.Port = r.SectionName
	return s, s.Name != ""
}

// isMultiZone says whether a reference is to the MeshMultiZoneService of a name.
func (r Ref) isMultiZone(name string) bool {
	return r.Kind == kumav1alpha1.MeshMultiZoneServiceKind && cmp.Or(r.Name, r.Labels[kumav1alpha1.LabelDisplayName]) == name
}

// isSuccessorOf says whether a reference, next to an old one, is to the same MeshService by the name of a port, or by a
// port that the tag lacks.
func (r Ref) isSuccessorOf(old Ref, wanted Section) bool {
	s, ok := r.section()
	_, err := strconv.Atoi(s.Port)
	_, _, _, hasPort := model.ParseKubernetesTag(old.Name)
	return ok && (err != nil || !hasPort) && s.Name == wanted.Name && s.Namespace == wanted.Namespace
}

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
