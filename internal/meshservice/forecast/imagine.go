package forecast

import (
	"maps"
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// Question is what somebody wants to know of a mesh.
type Question struct {
	// Mode that it would have.
	Mode model.Mode
	// Consumers that would be switched over, as namespace/Kind/name; Everybody is all of them.
	Consumers []string
	Everybody bool
}

// Compare tells what changes for the consumers of a mesh with what is asked for.
func Compare(w *World, q Question) (Forecast, error) {
	mesh := w.Mesh.Name
	f := Forecast{Mesh: mesh, From: model.Mode(w.Mesh.Mode()), To: q.Mode, Zone: w.Where.Zone, Notes: slices.Clone(w.notes)}
	today := w.engine(w.Mesh, w.meshServices, consumers.Switched(w.Mesh))
	switched := consumers.Switched(w.Mesh)
	var err error
	if f.Switched, err = w.imagineSwitched(switched, today.Proxies(mesh), q); err != nil {
		return Forecast{}, err
	}
	services := w.servicesIn(q.Mode)
	f.Made, f.Removed = namesBeyond(services, w.meshServices), namesBeyond(w.meshServices, services)
	then := w.engine(w.imagined(q.Mode), services, switched)
	if f.Groups, f.Consumers, err = consumersOf(mesh, today, then); err != nil {
		return Forecast{}, err
	}
	if q.Mode == model.ReachableBackendRefs && len(q.Consumers) == 0 && !q.Everybody {
		f.Notes = append(f.Notes, "The mode alone switches no consumer over: --switched shows what becomes of all that are, and --consumer of one.")
	}
	if q.Mode == model.Disabled && len(f.Switched) > 0 {
		f.Notes = append(f.Notes, "There is nothing to switch over to in Disabled: give --mode "+string(model.ReachableBackendRefs)+" as well.")
	}
	f.Routes = routesToLookAt(w.policies, q.Mode)
	f.Problems = problemsOf(today.Problems(mesh), then.Problems(mesh), f.Routes)
	return f, nil
}

// imagineSwitched adds those that somebody wants to see switched over.
func (w *World) imagineSwitched(switched map[string]bool, proxies []model.Proxy, q Question) ([]string, error) {
	known := map[string]bool{}
	for _, p := range proxies {
		known[p.Consumer] = true
	}
	wanted := q.Consumers
	if q.Everybody {
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

// imagined is the mesh with a mode that is in force.
func (w *World) imagined(mode model.Mode) *kumav1alpha1.Mesh {
	mesh := w.Mesh.DeepCopy()
	mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: kumav1alpha1.Mode(mode)}
	mesh.Status.Mode, mesh.Status.ObservedGeneration = mesh.Mode(), mesh.Generation
	return mesh
}

// engine is the one that makes the configuration of proxies, with all that is known.
func (w *World) engine(mesh *kumav1alpha1.Mesh, services []*kumav1alpha1.MeshService, switched map[string]bool) *snapshot.Engine {
	e := snapshot.New(snapshot.Options{Zone: w.Where.Zone, Environment: w.Where.Environment, SystemNamespace: w.Where.SystemNamespace})
	e.Put(mesh)
	e.SetTags(mesh.Name, w.tags)
	e.SetSwitched(mesh.Name, switched)
	for _, s := range w.services {
		e.Put(s)
	}
	for _, d := range w.dataplanes {
		e.Put(d)
	}
	for _, s := range services {
		e.Put(s)
	}
	for _, o := range w.others {
		e.Put(o)
	}
	for _, p := range w.policies {
		e.Put(p)
	}
	e.Flush()
	return e
}

// namesBeyond are those of MeshServices that others lack.
func namesBeyond(services, others []*kumav1alpha1.MeshService) []string {
	names := map[string]bool{}
	for _, s := range services {
		names[s.Namespace+"/"+s.Name] = true
	}
	for _, s := range others {
		delete(names, s.Namespace+"/"+s.Name)
	}
	return append([]string{}, slices.Sorted(maps.Keys(names))...)
}
