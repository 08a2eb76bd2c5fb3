package policy

import (
	"fmt"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// level is how specific an entry is about a destination.
type level uint8

// The levels, from the least specific one. What is written for a tag counts for the MeshService that stands for it, but
// less than what is written for the MeshService.
const (
	unrelated level = iota
	ofMesh
	ofServiceByTag
	ofService
	ofPortByTag
	ofSection
)

// byTag says that an entry written for a tag counts for a MeshService.
func (l level) byTag() bool { return l == ofServiceByTag || l == ofPortByTag }

// reference is which destinations an entry is for.
type reference struct {
	// unusable says why it can be for none; nothing else is set then.
	unusable string
	// everything: it is for all.
	everything bool
	// kind of what it names: a tag, or a resource.
	kind model.Kind
	// route: it is a route's, which stays with its tag.
	route bool
	// name of the resource, or value of the tag, as it is written.
	name string
	// namespace of the resource as an object, and whether it is written: where it is not, it does not matter in universal.
	namespace        string
	namespaceWritten bool
	// labels, if not nil, select resources.
	labels map[string]string
	// section is the name of the only port that it is for.
	section string
	// standIn is the MeshService that stands for the tag. Its port is zero where the tag does not tell.
	standIn portName
}

// portName is a port of a MeshService, in any zone.
type portName struct {
	name, namespace string
	port            uint32
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
		return reference{unusable: fmt.Sprintf("is for a %s, which Fairlead does not look at", ref.Kind)}
	}
	if r.labels != nil {
		return r
	}
	if r.name == "" {
		return reference{unusable: "has neither name nor labels"}
	}
	if r.kind != model.MeshService || r.section != "" {
		return r
	}
	// No object has a name like a tag of Kubernetes, so that it is a tag's whatever else is written.
	name, space, port, kubernetes := model.ParseKubernetesTag(r.name)
	switch {
	case kubernetes:
		r.kind, r.standIn = model.Tag, portName{name, space, port}
	case !r.namespaceWritten:
		r.kind, r.standIn = model.Tag, portName{name: r.name}
	}
	return r
}

// level is how specific the reference is about a destination, or that it is for others.
func (r *reference) level(d *model.Destination) level {
	switch {
	case r.unusable != "":
		return unrelated
	case r.everything:
		return ofMesh
	case r.kind == model.Tag:
		return r.levelByTag(d)
	case r.kind != d.Key.Kind || !r.means(d):
		return unrelated
	case r.section == "":
		return ofService
	case r.section == d.Section:
		return ofSection
	}
	return unrelated
}

func (r *reference) levelByTag(d *model.Destination) level {
	switch {
	case d.Key.Kind == model.Tag && d.Key.Name == r.name:
		return ofService
	case d.Key.Kind != model.MeshService || r.route || !r.standsIn(d):
		return unrelated
	case r.standIn.port == 0:
		return ofServiceByTag
	case r.standIn.port == d.Key.Port:
		return ofPortByTag
	}
	return unrelated
}

// standsIn says whether the destination is a port, of whatever number, of the MeshService that stands for the tag.
func (r *reference) standsIn(d *model.Destination) bool {
	return d.Key.Kind == model.MeshService && r.standIn.name == d.Key.Name && r.standIn.namespace == d.Key.Namespace
}

// means says whether a reference to a resource is to that of the destination, whatever its section.
func (r *reference) means(d *model.Destination) bool {
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
	if d.Name == r.name && (d.Namespace == r.namespace) {
		return true
	}
	if d.Key.Namespace != "" || r.namespaceWritten {
		return false
	}
	// In universal a name is enough, and it is that of the zone's own.
	return d.Name == r.name || d.Key.Name == r.name && (d.Local || d.Key.Kind != model.MeshService)
}

// labelOf is a label of a destination. Those that say who it is are taken from its key, since whoever writes an object
// could write another's name on it.
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
