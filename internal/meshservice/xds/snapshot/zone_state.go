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
	// rules are those of namespaces that have any.
	rules map[string]desired.NamespaceRules
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
	if before != nil && w.admits(before) {
		before.set(w, false)
	}
	if now != nil && w.admits(now) {
		now.set(w, true)
	}
	setKey(&w.inputs, key, now, now != nil)
}

// member is an input of a mesh that its namespace has to be allowed.
type member interface {
	input
	belongs() (kind, namespace, name, mesh string)
}

// admits says whether an input counts: it names a mesh that its namespace may use.
func (w *zoneState) admits(in input) bool {
	m, ok := in.(member)
	if !ok || w.zone.IsUniversal() {
		return true
	}
	_, namespace, _, mesh := m.belongs()
	return namespace == w.zone.SystemNamespace || w.rules[namespace].AllowsMesh(mesh)
}

// refusedMember is the problem of an input that names a mesh and does not count in it, nil for all others.
func (w *zoneState) refusedMember(in input, mesh string) *Problem {
	m, ok := in.(member)
	if !ok || w.admits(in) {
		return nil
	}
	kind, namespace, name, its := m.belongs()
	if its != mesh {
		return nil
	}
	return &Problem{
		Object: kind + " " + namespace + "/" + name, Field: desired.MeshField,
		Message: desired.RefusedMeshText(kind, namespace, mesh, w.rules[namespace]),
	}
}

// setRules replaces the rules of a namespace. Its members are set again under the new ones.
func (w *zoneState) setRules(namespace string, now desired.NamespaceRules) {
	if w.rules[namespace].Equal(now) {
		return
	}
	var members []input
	for key, in := range w.inputs {
		if _, ok := in.(member); ok && key.namespace == namespace {
			members = append(members, in)
		}
	}
	for _, in := range members {
		if w.admits(in) {
			in.set(w, false)
		}
	}
	setKey(&w.rules, namespace, now, !now.Equal(desired.NamespaceRules{}))
	for _, in := range members {
		if w.admits(in) {
			in.set(w, true)
		}
	}
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
