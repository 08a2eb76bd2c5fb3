// Package snapshot keeps the configuration of every proxy of a zone. It takes objects one by one, and rebuilds only what a
// change affects: the resources of a destination are built once, and shared by all proxies that reach it under the same
// policies.
package snapshot

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// Engine builds configurations from the objects of a zone. It is safe for concurrent use: objects wait for the next Flush.
type Engine struct {
	pendingMu sync.Mutex
	pending   []func(*zoneState)

	// buildMu guards state, but for its zone.
	buildMu sync.Mutex
	state   zoneState
}

// New returns an empty engine.
func New(zone desired.ZoneInfo) *Engine {
	return &Engine{state: zoneState{zone: zone, meshes: map[string]*mesh{}}}
}

// Put adds or replaces an object, which must not be changed afterwards.
func (e *Engine) Put(obj model.Object) {
	key, now := keyOf(obj), readInput(obj, e.state.zone)
	e.enqueue(func(w *zoneState) { w.apply(key, now) })
}

// Delete deletes an object.
func (e *Engine) Delete(obj model.Object) {
	key := keyOf(obj)
	e.enqueue(func(w *zoneState) { w.apply(key, nil) })
}

// PutNamespace sets what objects of a namespace may name, by its labels and annotations.
func (e *Engine) PutNamespace(namespace metav1.Object) {
	name, rules := namespace.GetName(), desired.RulesOf(namespace)
	e.enqueue(func(w *zoneState) { w.setRules(name, rules) })
}

// DeleteNamespace forgets that.
func (e *Engine) DeleteNamespace(name string) {
	e.enqueue(func(w *zoneState) { w.setRules(name, desired.NamespaceRules{}) })
}

// SetVIPs sets the VIP of each kuma.io/service of a mesh.
func (e *Engine) SetVIPs(mesh string, vips map[string]string) {
	vips = maps.Clone(vips)
	e.enqueue(func(w *zoneState) { w.mesh(mesh).setVIPs(vips) })
}

// SetSwitched sets the switched consumers of a mesh, as namespace/Kind/name.
func (e *Engine) SetSwitched(mesh string, consumers map[string]bool) {
	consumers = maps.Clone(consumers)
	e.enqueue(func(w *zoneState) { w.mesh(mesh).setSwitched(consumers) })
}

func (e *Engine) enqueue(change func(*zoneState)) {
	e.pendingMu.Lock()
	defer e.pendingMu.Unlock()
	e.pending = append(e.pending, change)
}

// Flush builds what has changed since the last Flush. It returns the proxies whose Config has changed or is deleted.
func (e *Engine) Flush() []model.ProxyID {
	e.buildMu.Lock()
	defer e.buildMu.Unlock()

	e.pendingMu.Lock()
	pending := e.pending
	e.pending = nil
	e.pendingMu.Unlock()

	for _, change := range pending {
		change(&e.state)
	}
	return e.state.build()
}

// Config returns the configuration of a proxy as of the last Flush; nil if there is no such Dataplane.
func (e *Engine) Config(id model.ProxyID) *resource.Config {
	e.buildMu.Lock()
	defer e.buildMu.Unlock()
	if m := e.state.meshes[id.Mesh]; m != nil && m.grouped[id] != nil {
		return m.grouped[id].config
	}
	return nil
}
