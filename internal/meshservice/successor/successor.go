// Package successor resolves references of policies to values of kuma.io/service: which MeshService replaces the tag, and
// whether an entry for it exists.
package successor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// Wanted is the section that replaces a tag.
type Wanted struct {
	Section
	// Number of the port.
	Number string
	// Named says that the name of the port is known. Otherwise Port is the number, which is the name of a port without one.
	Named bool
}

// Successor returns the section that replaces the tag, or why it is not known. A tag without a port has the given one, if
// that is not zero.
func (r Ref) Successor(port uint16, ports Ports) (w Wanted, why string) {
	if r.Kind == kumav1alpha1.MeshServiceSubsetKind {
		return Wanted{}, "a MeshService has no subsets: create a MeshService for these tags, and add an entry for it"
	}
	w.Name = r.Name
	number := uint32(port)
	if name, namespace, its, ok := model.ParseKubernetesTag(r.Name); ok {
		w.Name, w.Namespace, number = name, namespace, its
	}
	if len(validation.IsDNS1123Label(w.Name)) > 0 {
		return Wanted{}, "the value is not a valid MeshService name, so no MeshService replaces it"
	}
	known := ports.of(w.Name, w.Namespace)
	if number == 0 {
		number = onlyNumber(known)
	}
	switch {
	case number == 0 && len(known) > 0:
		return w, fmt.Sprintf("the value has no port, and MeshService %s has %s: give --port, or add an entry with a sectionName for each", w.Name, PortsText(known))
	case number == 0:
		return w, "the value has no port: give --port, or add an entry with a sectionName"
	}
	w.Number = strconv.Itoa(int(number))
	w.Port = w.Number
	switch names := namesOf(known, number); {
	case len(names) == 1:
		w.Port, w.Named = names[0], true
	case len(names) > 1:
		return w, fmt.Sprintf("zones name port %s of MeshService %s differently: add an entry for each sectionName of %s", w.Number, w.Name, strings.Join(names, ", "))
	case len(known) > 0:
		return w, fmt.Sprintf("MeshService %s has no port %s, but %s: correct the entry, or remove it", w.Name, w.Number, PortsText(known))
	}
	return w, ""
}

// Converted says of each reference whether it is to a tag for which an entry for its MeshService exists. Each new entry
// counts for one old one: the one before it, or any other.
func Converted(refs []Ref, port uint16, ports Ports, route bool) []bool {
	there := map[Section]int{}
	for _, r := range refs {
		if s, ok := r.section(); ok {
			there[s]++
		}
	}
	converted := make([]bool, len(refs))
	take := func(i int, s Section) {
		if !converted[i] && there[s] > 0 {
			there[s]--
			converted[i] = true
		}
	}
	forEachTag := func(visit func(i int, wanted Wanted, why string)) {
		for i, r := range refs {
			if r.RefersToTag() && !converted[i] {
				wanted, why := r.Successor(port, ports)
				visit(i, wanted, why)
			}
		}
	}
	forEachTag(func(i int, wanted Wanted, why string) {
		if i+1 == len(refs) || why != "" {
			return
		}
		if s, ok := refs[i+1].section(); ok && slices.Contains(wanted.spellings(), s) {
			take(i, s)
		}
	})
	forEachTag(func(i int, wanted Wanted, why string) {
		for _, s := range wanted.spellings() {
			if why == "" {
				take(i, s)
			}
		}
		if !converted[i] && i+1 < len(refs) {
			next := refs[i+1]
			converted[i] = wanted.Name != "" && (next.isSuccessorOf(refs[i], wanted) || route && next.isMultiZone(wanted.Name))
		}
	})
	return converted
}

// spellings are the section, and the section by the number of its port, as it may have been written when the name was not
// known.
func (w Wanted) spellings() []Section {
	if w.Port == w.Number {
		return []Section{w.Section}
	}
	return []Section{w.Section, {w.Name, w.Namespace, w.Number}}
}

// Misnamed returns the name of the port that a reference to a MeshService calls by its number, if the port has another
// name: such a reference targets nothing.
func (r Ref) Misnamed(ports Ports) (s Section, name string, misnamed bool) {
	s, ok := r.section()
	if !ok && r.Kind == kumav1alpha1.MeshServiceKind && r.Labels == nil && r.Namespace != "" {
		s, ok = Section{r.Name, r.Namespace, r.SectionName}, true
	}
	number, err := strconv.ParseUint(s.Port, 10, 16)
	if !ok || err != nil {
		return s, "", false
	}
	known := ports.of(s.Name, s.Namespace)
	names := namesOf(known, uint32(number))
	if len(names) == 0 || slices.ContainsFunc(known, func(p Port) bool { return p.Name == s.Port }) {
		return s, "", false
	}
	return s, names[0], true
}

// MayTarget says whether a reference to a MeshService itself, of a policy in a namespace, is to the section or may be.
func (r Ref) MayTarget(w Wanted, namespace string) bool {
	if r.Kind != kumav1alpha1.MeshServiceKind || r.RefersToTag() {
		return false
	}
	if r.SectionName != "" && r.SectionName != w.Port && r.SectionName != w.Number {
		// If the name of the port is not known, it may be this one.
		if _, err := strconv.Atoi(r.SectionName); w.Named || err == nil {
			return false
		}
	}
	if r.Name != "" && (r.Name != w.Name || w.Namespace != "" && cmp.Or(r.Namespace, namespace) != w.Namespace) {
		return false
	}
	for label, value := range r.Labels {
		switch label {
		case kumav1alpha1.LabelDisplayName:
			if value != w.Name {
				return false
			}
		case kumav1alpha1.LabelNamespace, kumav1alpha1.LabelKubernetesNamespace:
			if value != w.Namespace {
				return false
			}
		}
	}
	return true
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
// port that the tag lacks. If the name of the port is known, only that one counts.
func (r Ref) isSuccessorOf(old Ref, wanted Wanted) bool {
	s, ok := r.section()
	if !ok || s.Name != wanted.Name || s.Namespace != wanted.Namespace {
		return false
	}
	if wanted.Named {
		return slices.Contains(wanted.spellings(), s)
	}
	_, err := strconv.Atoi(s.Port)
	_, _, _, hasPort := model.ParseKubernetesTag(old.Name)
	return err != nil || !hasPort
}

// TagReference is a reference of a route to a tag without an entry for the MeshService that replaces it: other policies for
// a tag apply to its MeshService, routes do not.
type TagReference struct {
	// Route is its kind and namespace/name, and Field the path to the reference.
	Route, Field string
	Tag          string
	// Backend says that it is a backend of the route, or a mirror, not its target; OfTag, that the route targets a tag.
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

// Remedy says how to refer to the MeshService. The port is called by its name.
func (s TagReference) Remedy(ports Ports) string {
	name, namespace, number, ok := model.ParseKubernetesTag(s.Tag)
	labels := fmt.Sprintf("%s: %s, %s: %s", kumav1alpha1.LabelDisplayName, name, kumav1alpha1.LabelNamespace, namespace)
	if !ok {
		name, labels = s.Tag, fmt.Sprintf("%s: %s", kumav1alpha1.LabelDisplayName, s.Tag)
	}
	known := ports.of(name, namespace)
	if number == 0 {
		number = onlyNumber(known)
	}
	section := "the sectionName of a port"
	switch names := namesOf(known, number); {
	case len(names) == 1:
		section = model.SectionText(names[0])
	case len(names) > 1:
		section = "one for each sectionName of " + strings.Join(names, ", ")
	case len(known) > 0:
		section += ", which are " + PortsText(known)
	case number > 0:
		section = fmt.Sprintf("sectionName: the name of port %d, or \"%d\" if it has none", number, number)
	}
	return fmt.Sprintf("add an entry for labels {%s} and %s, or for a MeshMultiZoneService", labels, section)
}

// TagReferencesIn returns the tag references of a policy; none, if it is not a route.
func TagReferencesIn(p kumav1alpha1.Policy, ports Ports) []TagReference {
	entries := p.Entries()
	refs := make([]Ref, len(entries))
	for i, e := range entries {
		refs[i] = OfTarget(e.TargetRef)
	}
	var found []TagReference
	converted := Converted(refs, 0, ports, true)
	for i, e := range entries {
		kind, backends := model.RouteBackends(e.Default)
		if kind == "" || converted[i] {
			continue
		}
		route := fmt.Sprintf("%s %s/%s", kind, p.GetNamespace(), p.GetName())
		ofTag := refs[i].followsTag()
		if ofTag {
			found = append(found, TagReference{Route: route, Field: fmt.Sprintf("spec.to[%d].targetRef", e.Index), Tag: e.TargetRef.Name, OfTag: true})
		}
		for _, backend := range backends {
			if OfBackend(backend.BackendRef).followsTag() {
				field := fmt.Sprintf("spec.to[%d].%s", e.Index, backend.Path)
				found = append(found, TagReference{Route: route, Field: field, Tag: backend.Name, Backend: true, OfTag: ofTag})
			}
		}
	}
	return found
}
