package forecast

import (
	"maps"
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// simulateSwitched adds the consumers of a scenario to the switched ones.
func (w *MeshState) simulateSwitched(switched map[string]bool, proxies []model.Proxy, q Scenario) ([]string, error) {
	known := map[string]bool{}
	for _, p := range proxies {
		known[p.Consumer] = true
	}
	wanted := q.Consumers
	if q.AllConsumers {
		wanted = slices.Sorted(maps.Keys(known))
	}
	var added []string
	for _, name := range wanted {
		if !known[name] {
			return nil, UnknownConsumerError{Mesh: w.Mesh.Name, Consumer: name, Known: slices.Sorted(maps.Keys(known))}
		}
		if !switched[name] {
			switched[name] = true
			added = append(added, name)
		}
	}
	return added, nil
}

// withMode returns the Mesh with a mode in force.
func (w *MeshState) withMode(mode model.Mode) *kumav1alpha1.Mesh {
	mesh := w.Mesh.DeepCopy()
	mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: kumav1alpha1.Mode(mode)}
	mesh.Status.Mode, mesh.Status.ObservedGeneration = mesh.Mode(), mesh.Generation
	return mesh
}

// engine returns the engine of the operator with the state of the mesh.
func (w *MeshState) engine(mesh *kumav1alpha1.Mesh, services []*kumav1alpha1.MeshService, switched map[string]bool) *snapshot.Engine {
	e := snapshot.New(w.Where)
	e.Put(mesh)
	e.SetVIPs(mesh.Name, w.tags)
	e.SetSwitched(mesh.Name, switched)
	putAll(e, w.services)
	putAll(e, w.dataplanes)
	putAll(e, services)
	putAll(e, w.multiZone)
	putAll(e, w.policies)
	e.Flush()
	return e
}

func putAll[T model.Object](e *snapshot.Engine, objects []T) {
	for _, o := range objects {
		e.Put(o)
	}
}

// namesOnlyIn returns the names of MeshServices that others lack.
func namesOnlyIn(services, others []*kumav1alpha1.MeshService) []string {
	names := map[string]bool{}
	for _, s := range services {
		names[s.Namespace+"/"+s.Name] = true
	}
	for _, s := range others {
		delete(names, s.Namespace+"/"+s.Name)
	}
	return append([]string{}, slices.Sorted(maps.Keys(names))...)
}
