// Package forecast compares a mesh with the same mesh in another mode. It runs the engine that builds the configurations of
// proxies, so it cannot differ from what the operator does.
package forecast

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// Forecast is what a scenario changes.
type Forecast struct {
	Mesh string     `json:"mesh"`
	From model.Mode `json:"from"`
	To   model.Mode `json:"to"`
	// Zone is the zone of the proxies.
	Zone string `json:"zone"`
	// Switched are the consumers that the scenario switches.
	Switched []string `json:"switched,omitempty"`
	// Made and Removed are MeshServices, as namespace/name.
	Made    []string `json:"made"`
	Removed []string `json:"removed"`
	// Groups are consumers with the same changes; those without changes are in none.
	Groups    []Group `json:"groups"`
	Consumers int     `json:"consumers"`
	// Routes need a decision of a person.
	Routes []Finding `json:"routes"`
	// Problems are dangling references, and resources that cannot be built.
	Problems []Finding `json:"problems"`
	Notes    []string  `json:"notes,omitempty"`
}

// Group is consumers with the same changes.
type Group struct {
	Consumers []Consumer     `json:"consumers"`
	Changes   []Change       `json:"changes"`
	Policies  []PolicyChange `json:"policies"`
}

// Consumer is a workload, or a proxy in universal.
type Consumer struct {
	Name string `json:"name"`
	// Proxies is how many of its proxies have the changes.
	Proxies int `json:"proxies"`
}

// Moved counts the listeners of a group that lead to other zones or destinations.
func (g Group) Moved() int { return g.listeners(Change.Moves) }

// Lost counts the removed listeners.
func (g Group) Lost() int {
	return g.listeners(func(c Change) bool { return c.Action == Disappears })
}

func (g Group) listeners(of func(Change) bool) int {
	n := 0
	for _, c := range g.Changes {
		if c.Kind == Listener && of(c) {
			n++
		}
	}
	return n
}

// Scenario is what to compare a mesh with.
type Scenario struct {
	// Mode of the mesh.
	Mode model.Mode
	// Consumers to switch, as namespace/Kind/name; AllConsumers switches all.
	Consumers    []string
	AllConsumers bool
}

// Compare returns what a scenario changes for the consumers of a mesh.
func Compare(w *MeshState, q Scenario) (Forecast, error) {
	mesh := w.Mesh.Name
	f := Forecast{Mesh: mesh, From: model.Mode(w.Mesh.Mode()), To: q.Mode, Zone: w.Where.Zone, Notes: slices.Clone(w.notes)}
	today := w.engine(w.Mesh, w.meshServices, consumers.Switched(w.Mesh))
	switched := consumers.Switched(w.Mesh)
	var err error
	if f.Switched, err = w.simulateSwitched(switched, today.Proxies(mesh), q); err != nil {
		return Forecast{}, err
	}
	services := w.meshServicesIn(q.Mode)
	f.Made, f.Removed = namesOnlyIn(services, w.meshServices), namesOnlyIn(w.meshServices, services)
	then := w.engine(w.withMode(q.Mode), services, switched)
	if f.Groups, f.Consumers, err = consumersOf(mesh, today, then); err != nil {
		return Forecast{}, err
	}
	if q.Mode == model.ReachableBackendRefs && len(q.Consumers) == 0 && !q.AllConsumers {
		f.Notes = append(f.Notes, "The mode alone switches no consumer: --switched shows the changes with all consumers switched, and --consumer with one.")
	}
	if q.Mode == model.Disabled && len(f.Switched) > 0 {
		f.Notes = append(f.Notes, "There are no MeshServices to switch to in Disabled: give --mode "+string(model.ReachableBackendRefs)+" as well.")
	}
	f.Routes = tagRouteFindings(w.policies, q.Mode, then.Ports(mesh))
	f.Problems = append(w.blockedFindings(q.Mode), problemsOf(today.Problems(mesh), then.Problems(mesh), f.Routes)...)
	if q.Mode == model.Exclusive && w.Mesh.ModeInForce() != kumav1alpha1.ModeExclusive {
		f.Problems = append(w.exclusiveFindings(today, then), f.Problems...)
	}
	return f, nil
}

// consumersOf groups the consumers of a mesh by their changes.
func consumersOf(mesh string, before, after *snapshot.Engine) ([]Group, int, error) {
	// Proxies with the same configurations are compared once.
	type configs struct{ before, after *resource.Config }
	keys := map[configs]string{}
	read, groups := reader{}, map[string]*Group{}
	members := map[string]map[string]int{}
	consumers := map[string]bool{}
	for _, proxy := range after.Proxies(mesh) {
		consumers[proxy.Consumer] = true
		pair := configs{before.Config(proxy.ID), after.Config(proxy.ID)}
		key, known := keys[pair]
		if !known {
			group, err := read.changesOf(proxy.ID, before, after)
			if err != nil {
				return nil, 0, fmt.Errorf("compare the configurations of proxy %s: %w", proxy.ID, err)
			}
			if key, err = group.key(); err != nil {
				return nil, 0, err
			}
			keys[pair] = key
			if groups[key] == nil {
				groups[key], members[key] = group, map[string]int{}
			}
		}
		members[key][proxy.Consumer]++
	}
	all := []Group{}
	for key, g := range groups {
		if len(g.Changes)+len(g.Policies) == 0 {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(members[key])) {
			g.Consumers = append(g.Consumers, Consumer{Name: name, Proxies: members[key][name]})
		}
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Moved(), a.Moved()), cmp.Compare(a.Consumers[0].Name, b.Consumers[0].Name), cmp.Compare(len(a.Changes), len(b.Changes)))
	})
	return all, len(consumers), nil
}

// changesOf returns the changes of one proxy.
func (r reader) changesOf(id model.ProxyID, before, after *snapshot.Engine) (*Group, error) {
	was, err := r.viewOf(before.Config(id))
	if err != nil {
		return nil, err
	}
	is, err := r.viewOf(after.Config(id))
	if err != nil {
		return nil, err
	}
	changes := compare(was, is)
	policies := comparePolicies(changes, policyDecisionsOf(before.Explain(id)), policyDecisionsOf(after.Explain(id)))
	return &Group{Changes: changes, Policies: policies}, nil
}

// key is equal for groups with the same changes.
func (g *Group) key() (string, error) {
	text, err := json.Marshal(g)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return string(sum[:]), nil
}
