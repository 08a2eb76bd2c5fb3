package policy

import (
	"slices"

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
