package policy

import (
	"fmt"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// level is how specific an entry is about a destination.
type level uint8

// The levels, from the least specific one. An entry for a tag also applies to its MeshService, with less precedence than any
// entry for the MeshService itself.
const (
	unrelated level = iota
	ofMesh
	ofServiceByTag
	ofPortByTag
	ofService
	ofSection
)

// byTag says that an entry for a tag applies to its MeshService.
func (l level) byTag() bool { return l == ofServiceByTag || l == ofPortByTag }

// direct says that an entry is for the destination itself.
func (l level) direct() bool { return l == ofService || l == ofSection }

// reference is the destinations that an entry targets.
type reference struct {
	// unusable is why the reference has no destinations; all other fields are then unset.
	unusable string
	// everything targets all destinations.
	everything bool
	// kind is that of the destination: a tag or a resource.
	kind model.Kind
	// route: routes for a tag do not apply to its MeshService.
	route bool
	// name is the written name of the resource, or value of the tag.
	name string
	// namespace is that of the object, and namespaceWritten says that the reference names it: otherwise universal ignores it.
	namespace        string
	namespaceWritten bool
	// labels, if not nil, select resources.
	labels map[string]string
	// section and port restrict the reference to one port. For a tag, port is that of its MeshService.
	section string
	port    uint32
	// only, if not empty, restricts resources to a namespace.
	only string
	// tagService is the MeshService, in any zone, of the tag.
	tagService objectName
}

func referenceOf(ref kumav1alpha1.ToTargetRef, namespace string, route bool) reference {
	r := reference{route: route, name: ref.Name, namespace: ref.Namespace, labels: ref.Labels, section: ref.Section()}
	r.namespaceWritten = ref.Namespace != ""
	if !r.namespaceWritten {
		r.namespace = namespace
	}
	switch ref.Kind {
	case kumav1alpha1.MeshKind:
		return reference{everything: true}
	case kumav1alpha1.MeshServiceKind:
		r.kind = model.MeshService
	case kumav1alpha1.MeshMultiZoneServiceKind:
		r.kind = model.MeshMultiZoneService
	default:
		return reference{unusable: fmt.Sprintf("targets a %s, which Fairlead does not support", ref.Kind)}
	}
	if r.labels != nil {
		return r
	}
	if r.name == "" {
		return reference{unusable: "has neither name nor labels"}
	}
	if r.kind == model.MeshService && r.section == "" {
		r.readTag()
	}
	return r
}

// readTag checks whether the name is the value of a tag.
func (r *reference) readTag() {
	if !model.NamesTag(r.name, r.namespaceWritten) {
		return
	}
	r.kind, r.tagService = model.Tag, objectName{name: r.name}
	if name, space, port, kubernetes := model.ParseKubernetesTag(r.name); kubernetes {
		r.tagService, r.port = objectName{space, name}, port
	}
}

// backendOf is the reference of a backend of a route in that namespace.
func backendOf(ref kumav1alpha1.BackendRef, namespace string) reference {
	to := kumav1alpha1.ToTargetRef{Kind: ref.Kind, Name: ref.Name, Namespace: ref.Namespace, Labels: ref.Labels, SectionName: ref.SectionName}
	r := referenceOf(to, namespace, true)
	if ref.Port == nil || r.unusable != "" {
		return r
	}
	// A port number also refers to a resource, not to a tag.
	if r.kind == model.Tag {
		r.kind, r.tagService = model.MeshService, objectName{}
	}
	r.port = uint32(*ref.Port)
	return r
}

// level is how specific the reference is about a destination.
func (r *reference) level(d *model.Destination) level {
	switch {
	case r.unusable != "":
		return unrelated
	case r.everything:
		return ofMesh
	case r.kind == model.Tag:
		return r.levelByTag(d)
	case r.kind != d.Key.Kind || r.only != "" && r.only != d.Key.Namespace || !r.matches(d):
		return unrelated
	case !r.hasPort(d):
		return unrelated
	case r.section == "" && r.port == 0:
		return ofService
	}
	return ofSection
}

// hasPort says whether the reference targets the port of a destination.
func (r *reference) hasPort(d *model.Destination) bool {
	return (r.section == "" || r.section == d.Section) && (r.port == 0 || r.port == d.Key.Port)
}

func (r *reference) levelByTag(d *model.Destination) level {
	switch {
	case d.Key.Kind == model.Tag && d.Key.Name == r.name:
		return ofService
	case r.route || !r.isTagService(d) || !r.hasPort(d):
		return unrelated
	case r.port == 0:
		return ofServiceByTag
	}
	return ofPortByTag
}

// isTagService says whether the destination is a port of the MeshService of the tag.
func (r *reference) isTagService(d *model.Destination) bool {
	return d.Key.Kind == model.MeshService && r.tagService.name == d.Key.Name && r.tagService.namespace == d.Key.Namespace
}

// matches says whether a reference selects the resource of a destination, regardless of the section.
func (r *reference) matches(d *model.Destination) bool {
	if r.name != "" && !r.names(d) {
		return false
	}
	for label, value := range r.labels {
		if got, found := labelOf(d, label); !found || got != value {
			return false
		}
	}
	return true
}

func (r *reference) names(d *model.Destination) bool {
	if d.Name == r.name && d.Namespace == r.namespace {
		return true
	}
	if d.Key.Namespace != "" || r.namespaceWritten {
		return false
	}
	// In universal the name alone refers to the local service.
	return d.Name == r.name || d.Key.Name == r.name && (d.Local || d.Key.Kind != model.MeshService)
}

// labelOf returns a label of a destination. Identity labels are taken from its key, since those of the object are not
// trusted.
func labelOf(d *model.Destination, label string) (string, bool) {
	value := ""
	switch label {
	case kumav1alpha1.LabelDisplayName:
		value = d.Key.Name
	case kumav1alpha1.LabelNamespace, kumav1alpha1.LabelKubernetesNamespace:
		value = d.Key.Namespace
	case kumav1alpha1.LabelZone:
		value = d.Key.Zone
	case kumav1alpha1.LabelMesh:
		value = d.Key.Mesh
	}
	if value != "" {
		return value, true
	}
	value, found := d.Labels[label]
	return value, found
}
