package snapshot

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// zoneState is everything that is known of the zone, by mesh.
type zoneState struct {
	zone   desired.ZoneInfo
	meshes map[string]*mesh
	// inputs are the last read of each object.
	inputs map[objectKey]input
	// services are those of Kubernetes, and ingresses those of other zones; neither belongs to one mesh.
	services  map[types.NamespacedName]*kubernetesService
	ingresses map[string]map[types.NamespacedName]*ingress
	// ignored are ingresses outside the system namespace.
	ignored map[types.NamespacedName]*ingress
	// owners are the Services of a ClusterIP.
	owners map[string]sets.Set[types.NamespacedName]
}

// input is the relevant part of an object.
type input interface {
	// set adds the input to the state or removes it, and marks what depends on it dirty.
	set(w *zoneState, present bool)
}

func newZoneState(where desired.ZoneInfo) *zoneState {
	return &zoneState{
		zone:      where,
		meshes:    map[string]*mesh{},
		inputs:    map[objectKey]input{},
		services:  map[types.NamespacedName]*kubernetesService{},
		ingresses: map[string]map[types.NamespacedName]*ingress{},
		ignored:   map[types.NamespacedName]*ingress{},
		owners:    map[string]sets.Set[types.NamespacedName]{},
	}
}

// mesh returns the state of a mesh, which need not have a Mesh object.
func (w *zoneState) mesh(name string) *mesh {
	m := w.meshes[name]
	if m == nil {
		m = newMesh(w, name)
		w.meshes[name] = m
	}
	return m
}

// apply replaces the input of an object; nil removes it.
func (w *zoneState) apply(key objectKey, obj model.Object) {
	before := w.inputs[key]
	var now input
	if obj != nil {
		now = w.read(key, obj)
		if same(before, now) {
			return
		}
	}
	if before != nil {
		before.set(w, false)
	}
	if now != nil {
		now.set(w, true)
	}
	setKey(w.inputs, key, now, now != nil)
}

// same says whether nothing relevant has changed. The status and version of a policy are not.
func same(before, now input) bool {
	a, ok := before.(*policyInput)
	b, too := now.(*policyInput)
	if ok && too {
		return a.mesh == b.mesh && reflect.DeepEqual(a.policy.TopLevel(), b.policy.TopLevel()) &&
			reflect.DeepEqual(a.policy.Entries(), b.policy.Entries())
	}
	return reflect.DeepEqual(before, now)
}

func (w *zoneState) read(key objectKey, obj model.Object) input {
	switch obj := obj.(type) {
	case *kumav1alpha1.Mesh:
		return readMesh(obj)
	case *kumav1alpha1.Dataplane:
		return readDataplane(obj, w.zone)
	case *kumav1alpha1.ZoneIngress:
		return readIngress(obj, w.zone)
	case *kumav1alpha1.MeshService:
		return readMeshService(obj, w.zone)
	case *kumav1alpha1.MeshMultiZoneService:
		return readMultiZone(obj, w.zone)
	case *corev1.Service:
		return readKubernetesService(obj)
	default:
		return &policyInput{key: key, mesh: desired.MeshOf(obj), policy: obj.(kumav1alpha1.Policy)}
	}
}

// build brings all meshes up to date. It returns the Config of every affected proxy, nil for deleted ones.
func (w *zoneState) build() map[model.ProxyID]*resource.Config {
	built := map[model.ProxyID]*resource.Config{}
	for name, m := range w.meshes {
		m.build(built)
		if m.isEmpty() {
			delete(w.meshes, name)
		}
	}
	return built
}
