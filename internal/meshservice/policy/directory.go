package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Directory resolves references to destinations.
type Directory struct {
	tags map[string]*model.Destination
	// byDisplayName are ports of resources by display name, byName by the name of the object.
	byDisplayName, byName map[resourceName][]*model.Destination
	byKind                map[model.Kind][]*model.Destination
}

// NewDirectory returns a directory of the destinations of a mesh.
func NewDirectory(destinations []model.Destination) *Directory {
	d := &Directory{
		tags:          map[string]*model.Destination{},
		byDisplayName: map[resourceName][]*model.Destination{}, byName: map[resourceName][]*model.Destination{},
		byKind: map[model.Kind][]*model.Destination{},
	}
	for i := range destinations {
		destination := &destinations[i]
		kind := destination.Key.Kind
		if kind == model.Tag {
			d.tags[destination.Key.Name] = destination
			continue
		}
		d.byKind[kind] = append(d.byKind[kind], destination)
		displayed := resourceName{kind: kind, name: destination.Key.Name}
		d.byDisplayName[displayed] = append(d.byDisplayName[displayed], destination)
		if named := (resourceName{kind: kind, name: destination.Name}); named != displayed {
			d.byName[named] = append(d.byName[named], destination)
		}
	}
	return d
}

// Backends returns the destinations of a backend of a route in a namespace.
func (d *Directory) Backends(ref kumav1alpha1.BackendRef, namespace string) []model.Destination {
	r := backendOf(ref, namespace)
	var found []model.Destination
	for destination := range d.find(&r) {
		found = append(found, *destination)
	}
	return found
}

// find yields the destinations of a reference.
func (d *Directory) find(r *reference) func(func(*model.Destination) bool) {
	return func(yield func(*model.Destination) bool) {
		for _, destination := range d.candidates(r) {
			if r.level(destination) != unrelated && !yield(destination) {
				return
			}
		}
	}
}

// candidates are the destinations of the same service, perhaps with other ports.
func (d *Directory) candidates(r *reference) []*model.Destination {
	displayName, displayed := r.labels[kumav1alpha1.LabelDisplayName]
	switch {
	case r.kind == model.Tag:
		near := d.byDisplayName[resourceName{kind: model.MeshService, name: r.tagService.name}]
		if tag := d.tags[r.name]; tag != nil {
			near = append([]*model.Destination{tag}, near...)
		}
		return near
	case displayed:
		return d.byDisplayName[resourceName{kind: r.kind, name: displayName}]
	case r.labels != nil:
		return d.byKind[r.kind]
	}
	named := resourceName{kind: r.kind, name: r.name}
	return slices.Concat(d.byDisplayName[named], d.byName[named])
}

// Finding is a dangling reference of a policy, or an entry that is too large.
type Finding struct {
	// Kind of the policy, and its namespace and name.
	Kind, Policy string
	// Field is the path to the reference or entry.
	Field string
	// Problem and Remedy are for people.
	Problem, Remedy string
	// Generated says that a MeshService is missing, which may not be generated yet.
	Generated bool
	// ExceedsLimit says that an entry is ignored since it is too large.
	ExceedsLimit bool
}

// Dangling returns the references of policies to no destination of their mesh, and the entries that are too large, sorted.
func Dangling(policies []Policy, destinations []model.Destination) []Finding {
	directory := NewDirectory(destinations)
	var findings []Finding
	for _, p := range policies {
		report := func(path string, r reference) {
			field, problem, remedy := directory.missing(&r)
			if problem == "" {
				return
			}
			findings = append(findings, Finding{
				Kind: model.KindOf(p), Policy: objectName{p.GetNamespace(), p.GetName()}.String(),
				Field: strings.TrimSuffix(path+"."+field, "."), Problem: problem, Remedy: remedy,
				Generated: r.unusable == "" && r.kind == model.MeshService,
			})
		}
		ignored := tooLarge(p)
		for _, e := range p.Entries() {
			to := fmt.Sprintf("spec.to[%d]", e.Index)
			if f, found := ignored[e.Index]; found {
				findings = append(findings, f)
				continue
			}
			if e.TargetRef.Kind != kumav1alpha1.MeshExternalServiceKind {
				report(to+".targetRef", referenceOf(e.TargetRef, p.GetNamespace(), isRoute(e.Default)))
			}
			_, backends := model.RouteBackends(e.Default)
			for _, backend := range backends {
				if backend.Kind != kumav1alpha1.MeshExternalServiceKind {
					report(to+"."+backend.Path, backendOf(backend.BackendRef, p.GetNamespace()))
				}
			}
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Policy, b.Policy))
	})
	return findings
}

// missing describes a reference that resolves to nothing; empty if it resolves.
func (d *Directory) missing(r *reference) (field, problem, remedy string) {
	if r.unusable != "" {
		return "", r.unusable, "name a MeshService or a MeshMultiZoneService"
	}
	if r.everything {
		return "", "", ""
	}
	for range d.find(r) {
		return "", "", ""
	}
	near := d.candidates(r)
	switch {
	case r.kind == model.Tag:
		return "name", "there is no kuma.io/service " + r.name, r.tagRemedy(near)
	case slices.ContainsFunc(near, r.matches):
		return d.missingPort(r, near)
	case r.labels != nil:
		return "labels", fmt.Sprintf("there is no %s with these labels", r.kind), "correct the labels, or remove the entry"
	}
	problem = fmt.Sprintf("there is no %s %s in namespace %s", r.kind, r.name, r.namespace)
	for _, destination := range near {
		if destination.Name == r.name && destination.Namespace != "" {
			return "namespace", problem, "write namespace: " + destination.Namespace
		}
	}
	return "name", problem, "correct the name, or remove the entry"
}

func (d *Directory) missingPort(r *reference, near []*model.Destination) (field, problem, remedy string) {
	field, wanted := "sectionName", r.section
	if r.section == "" {
		field, wanted = "port", fmt.Sprint(r.port)
	}
	var sections []string
	for _, destination := range near {
		if !r.matches(destination) {
			continue
		}
		if r.section == fmt.Sprint(destination.Key.Port) {
			return field, fmt.Sprintf("port %s is named %s, and sectionName takes the name", wanted, destination.Section), "write " + model.SectionText(destination.Section)
		}
		sections = append(sections, fmt.Sprintf("%s (port %d)", destination.Section, destination.Key.Port))
	}
	slices.Sort(sections)
	return field, fmt.Sprintf("%s has no %s %s", r.text(), strings.TrimSuffix(field, "Name"), wanted),
		"choose among " + strings.Join(slices.Compact(sections), ", ")
}

// tagRemedy is the remedy for a missing tag whose MeshService exists.
func (r *reference) tagRemedy(near []*model.Destination) string {
	for _, destination := range near {
		switch {
		case r.isTagService(destination) && r.hasPort(destination):
			return fmt.Sprintf("routes for a kuma.io/service do not apply to its MeshService: route the MeshService %s by its labels and %s", r.tagService.name, model.SectionText(destination.Section))
		case r.isTagService(destination):
			return fmt.Sprintf("the MeshService %s has port %d", r.tagService.name, destination.Key.Port)
		case r.tagService.namespace == "" && destination.Namespace != "" && destination.Local:
			return fmt.Sprintf("if the MeshService %s is meant, write namespace: %s", r.name, destination.Namespace)
		}
	}
	return "correct the name, or remove the entry"
}
