package model

import (
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// Mode is how far a mesh uses its MeshServices.
type Mode string

// The modes.
const (
	Disabled             Mode = "Disabled"
	Everywhere           Mode = "Everywhere"
	ReachableBackendRefs Mode = "ReachableBackendRefs"
	Exclusive            Mode = "Exclusive"
)

// BackendRef selects resources that a proxy reaches.
type BackendRef struct {
	Kind            Kind
	Name, Namespace string
	// Labels, if not nil, select; none select every one of the kind.
	Labels map[string]string
	// Port, if not zero, is the only one.
	Port uint32
}

// Reach is what a proxy says that it calls.
type Reach struct {
	// Services are values of the tag, if ServicesSet.
	Services    []string
	ServicesSet bool
	// Refs are of resources, if RefsSet.
	Refs    []BackendRef
	RefsSet bool
}

// Target is what a reach is asked about.
type Target struct {
	Key Key
	// Name and Namespace are those of the resource as an object, Labels its own; empty for a tag.
	Name, Namespace string
	Labels          map[string]string
}

// Reaches says whether a proxy with this reach has an outbound for the target, in a mesh of that mode.
func (r Reach) Reaches(mode Mode, t Target) bool {
	if t.Key.Kind == Tag {
		return r.reachesTag(mode, t.Key.Name)
	}
	switch {
	case mode == Disabled:
		return false
	case r.RefsSet:
		for _, ref := range r.Refs {
			if ref.Selects(t) {
				return true
			}
		}
		return false
	case r.ServicesSet:
		return false
	default:
		return mode == Everywhere || mode == Exclusive
	}
}

func (r Reach) reachesTag(mode Mode, service string) bool {
	if mode == Exclusive {
		return false
	}
	if !r.ServicesSet {
		return true
	}
	for _, s := range r.Services {
		if s == service || s == "*" {
			return true
		}
	}
	return false
}

// Selects says whether the reference means the target.
func (b BackendRef) Selects(t Target) bool {
	if b.Kind != t.Key.Kind || (b.Port != 0 && b.Port != t.Key.Port) {
		return false
	}
	if b.Name != "" {
		return b.Name == t.Name && (b.Namespace == "" || b.Namespace == t.Namespace)
	}
	if b.Labels == nil {
		return false
	}
	for name, value := range b.Labels {
		if t.Labels[name] != value {
			return false
		}
	}
	return true
}

// WithMeshServices is the reach of a consumer that was switched. What it says of tags stays, and the resources are added that it
// has not chosen itself: those that go by the name of the tags it listed, in any zone, or else every one.
func (r Reach) WithMeshServices() Reach {
	if r.RefsSet {
		return r
	}
	r.RefsSet = true
	if !r.ServicesSet || slices.Contains(r.Services, "*") {
		for _, kind := range []Kind{MeshService, MeshMultiZoneService} {
			r.Refs = append(r.Refs, BackendRef{Kind: kind, Labels: map[string]string{}})
		}
		return r
	}
	for _, service := range r.Services {
		r.Refs = append(r.Refs, backendRefOf(service))
	}
	return r
}

// backendRefOf means the MeshServices that stand for the value of a tag.
func backendRefOf(service string) BackendRef {
	name, namespace, port, ok := ParseKubernetesTag(service)
	if !ok {
		return BackendRef{Kind: MeshService, Labels: map[string]string{kumav1alpha1.LabelDisplayName: service}}
	}
	return BackendRef{Kind: MeshService, Port: port, Labels: map[string]string{
		kumav1alpha1.LabelDisplayName: name, kumav1alpha1.LabelNamespace: namespace,
	}}
}
