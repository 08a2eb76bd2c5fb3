package snapshot

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
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
	// owners are the Services of a ClusterIP.
	owners map[string]sets.Set[types.NamespacedName]
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

// objectKey names an object of any kind.
type objectKey struct{ kind, namespace, name string }

func keyOf(obj model.Object) objectKey {
	return objectKey{model.KindOf(obj), obj.GetNamespace(), obj.GetName()}
}

// input is the relevant part of an object.
type input interface {
	// set adds the input to the state or removes it, and marks what depends on it dirty.
	set(w *zoneState, present bool)
}

func readInput(obj model.Object, where desired.ZoneInfo) input {
	switch obj := obj.(type) {
	case *kumav1alpha1.Mesh:
		return readMesh(obj)
	case *kumav1alpha1.Dataplane:
		return readDataplane(obj, where)
	case *kumav1alpha1.ZoneIngress:
		return readIngress(obj, where)
	case *kumav1alpha1.MeshService:
		return readMeshService(obj, where)
	case *kumav1alpha1.MeshMultiZoneService:
		return readMultiZone(obj, where)
	case *corev1.Service:
		return readKubernetesService(obj)
	case kumav1alpha1.Policy:
		return &policyInput{mesh: desired.MeshOf(obj), policy: obj}
	}
	panic(fmt.Sprintf("unsupported object type %T", obj))
}

// apply replaces the input of an object; nil removes it.
func (w *zoneState) apply(key objectKey, now input) {
	before := w.inputs[key]
	if same(before, now) {
		return
	}
	if before != nil {
		before.set(w, false)
	}
	if now != nil {
		now.set(w, true)
	}
	setKey(&w.inputs, key, now, now != nil)
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

// build brings all meshes up to date, and returns the proxies whose configuration has changed or is deleted.
func (w *zoneState) build() []model.ProxyID {
	var changed []model.ProxyID
	for name, m := range w.meshes {
		changed = append(changed, m.build()...)
		if m.isEmpty() {
			delete(w.meshes, name)
		}
	}
	return changed
}
