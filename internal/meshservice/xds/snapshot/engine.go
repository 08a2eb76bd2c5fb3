// Package snapshot keeps the configuration of every proxy of a zone. It takes objects one by one, and rebuilds only what a
// change affects: the resources of a destination are built once, and shared by all proxies that reach it under the same
// policies.
package snapshot

import (
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// Engine builds configurations from the objects of a zone. It is safe for concurrent use: objects wait for the next Flush,
// and configurations of the last Flush can be read during the next.
type Engine struct {
	zone desired.ZoneInfo

	pendingMu sync.Mutex
	// objects are put, or nil where deleted.
	objects  map[objectKey]model.Object
	vips     map[string]map[string]string
	switched map[string]map[string]bool

	// buildMu guards state.
	buildMu sync.Mutex
	state   *zoneState

	configsMu sync.RWMutex
	configs   map[model.ProxyID]*resource.Config
}

// objectKey names an object of any kind.
type objectKey struct{ kind, namespace, name string }

// New returns an empty engine.
func New(zone desired.ZoneInfo) *Engine {
	return &Engine{
		zone:     zone,
		objects:  map[objectKey]model.Object{},
		vips:     map[string]map[string]string{},
		switched: map[string]map[string]bool{},
		state:    newZoneState(zone),
		configs:  map[model.ProxyID]*resource.Config{},
	}
}

// Put adds or replaces an object, which must not be changed afterwards.
func (e *Engine) Put(obj model.Object) { e.enqueue(obj, obj) }

// Delete deletes an object.
func (e *Engine) Delete(obj model.Object) { e.enqueue(obj, nil) }

func (e *Engine) enqueue(of, is model.Object) {
	switch of.(type) {
	case *kumav1alpha1.Mesh, *kumav1alpha1.Dataplane, *kumav1alpha1.ZoneIngress, *kumav1alpha1.MeshService,
		*kumav1alpha1.MeshMultiZoneService, kumav1alpha1.Policy, *corev1.Service:
	default:
		panic(fmt.Sprintf("unsupported object type %T", of))
	}
	key := objectKey{model.KindOf(of), of.GetNamespace(), of.GetName()}
	e.pendingMu.Lock()
	defer e.pendingMu.Unlock()
	e.objects[key] = is
}

// SetVIPs sets the VIP of each kuma.io/service of a mesh.
func (e *Engine) SetVIPs(mesh string, vips map[string]string) {
	e.pendingMu.Lock()
	defer e.pendingMu.Unlock()
	e.vips[mesh] = maps.Clone(vips)
}

// SetSwitched sets the switched consumers of a mesh, as namespace/Kind/name.
func (e *Engine) SetSwitched(mesh string, consumers map[string]bool) {
	e.pendingMu.Lock()
	defer e.pendingMu.Unlock()
	e.switched[mesh] = maps.Clone(consumers)
}

// Flush builds what has changed since the last Flush. It returns the proxies whose Config has changed or is deleted.
func (e *Engine) Flush() []model.ProxyID {
	e.buildMu.Lock()
	defer e.buildMu.Unlock()

	e.pendingMu.Lock()
	objects, vips, switched := e.objects, e.vips, e.switched
	e.objects, e.vips, e.switched = map[objectKey]model.Object{}, map[string]map[string]string{}, map[string]map[string]bool{}
	e.pendingMu.Unlock()

	for key, obj := range objects {
		e.state.apply(key, obj)
	}
	for mesh, byTag := range vips {
		e.state.mesh(mesh).setVIPs(byTag)
	}
	for mesh, consumers := range switched {
		e.state.mesh(mesh).setSwitched(consumers)
	}
	return e.setConfigs(e.state.build())
}

// setConfigs makes the built configurations readable, and returns those that have changed.
func (e *Engine) setConfigs(built map[model.ProxyID]*resource.Config) []model.ProxyID {
	var changed []model.ProxyID
	for id, config := range built {
		before := e.configs[id]
		if before == config || (before != nil && before.Equal(config)) {
			continue
		}
		changed = append(changed, id)
	}
	e.configsMu.Lock()
	defer e.configsMu.Unlock()
	for id, config := range built {
		if config == nil {
			delete(e.configs, id)
		} else {
			e.configs[id] = config
		}
	}
	return changed
}

// Config returns the configuration of a proxy as of the last Flush; nil if there is no such Dataplane.
func (e *Engine) Config(id model.ProxyID) *resource.Config {
	e.configsMu.RLock()
	defer e.configsMu.RUnlock()
	return e.configs[id]
}
