package model

import (
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// BackendRef selects resources that a proxy reaches.
type BackendRef struct {
	Kind            Kind
	Name, Namespace string
	// Labels, if not nil, select; empty ones select all of the kind.
	Labels map[string]string
	// Port, if not zero, is the only one.
	Port uint32
}

// Reach is what a proxy may call.
type Reach struct {
	// Services are values of the tag, if ServicesSet.
	Services    []string
	ServicesSet bool
	// Refs are of resources, if RefsSet.
	Refs    []BackendRef
	RefsSet bool
}

// Target is a destination that a reach is checked for.
type Target struct {
	Key Key
	// Name and Namespace are those of the resource as an object, Labels its own; empty for a tag.
	Name, Namespace string
	Labels          map[string]string
}

// Reaches says whether a proxy with this reach has an outbound for the target in a mode.
func (r Reach) Reaches(mode Mode, t Target) bool {
	if t.Key.Kind == Tag {
		return r.reachesTag(mode, t.Key.Name)
	}
	switch {
	case mode == Disabled:
		return false
	case r.RefsSet:
		return slices.ContainsFunc(r.Refs, func(ref BackendRef) bool { return ref.Selects(t) })
	case r.ServicesSet:
		return false
	default:
		return mode == Everywhere || mode == Exclusive
	}
}

func (r Reach) reachesTag(mode Mode, service string) bool {
	return mode != Exclusive && (!r.ServicesSet || slices.Contains(r.Services, service) || slices.Contains(r.Services, "*"))
}

// ListsNone says that a proxy has an empty list of backends, and so is meant to reach no MeshService.
func (r Reach) ListsNone() bool { return r.RefsSet && len(r.Refs) == 0 }

// IsStranded says whether a proxy reaches one of the targets by its tag, and in mode Exclusive none of them, without being
// meant to.
func (r Reach) IsStranded(targets []Target) bool {
	if r.ListsNone() {
		return false
	}
	tags := false
	for _, t := range targets {
		if r.Reaches(Exclusive, t) {
			return false
		}
		tags = tags || t.Key.Kind == Tag && r.Reaches(Everywhere, t)
	}
	return tags
}

// Selects says whether the reference selects the target.
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

// WithMeshServices is the reach of a switched consumer. Its tags stay, and MeshServices are added unless it lists backends:
// those of its listed tags, in any zone, or else all.
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

// backendRefOf selects the MeshServices of a tag.
func backendRefOf(service string) BackendRef {
	name, namespace, port, ok := ParseKubernetesTag(service)
	if !ok {
		return BackendRef{Kind: MeshService, Labels: map[string]string{kumav1alpha1.LabelDisplayName: service}}
	}
	return BackendRef{Kind: MeshService, Port: port, Labels: map[string]string{
		kumav1alpha1.LabelDisplayName: name, kumav1alpha1.LabelNamespace: namespace,
	}}
}
