// Package publish feeds objects from informers into the snapshot engine, and the configurations that the engine builds into
// the store of the xDS server.
package publish

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// debounce gathers changes, so that one edit with several events reaches a proxy once.
const debounce = 20 * time.Millisecond

// Store holds the configurations of proxies; nil deletes one.
type Store interface {
	Set(model.ProxyID, *resource.Config)
}

// Publisher is a runnable of the leader.
type Publisher struct {
	Cache  cache.Cache
	Engine *snapshot.Engine
	Store  Store
	Where  desired.ZoneInfo

	changed chan struct{}

	mu     sync.Mutex
	meshes map[string]meshState

	problemsMu sync.Mutex
	// problems are those since the last flush, by mesh.
	problems map[string][]snapshot.Problem
}

// meshState is how far a mesh is published.
type meshState struct {
	// served says that the VIPs are recorded, and published that all proxies have got a configuration since.
	served, published bool
	// switched are the switched consumers, nil without a Mesh, and sent those of the published configurations.
	switched, sent map[string]bool
}

// New returns a publisher from the cache to the store.
func New(c cache.Cache, engine *snapshot.Engine, store Store, where desired.ZoneInfo) *Publisher {
	return &Publisher{
		Cache: c, Engine: engine, Store: store, Where: where, changed: make(chan struct{}, 1),
		meshes: map[string]meshState{}, problems: map[string][]snapshot.Problem{},
	}
}

// kinds are the kinds that the engine reads.
func (p *Publisher) kinds() []client.Object {
	kinds := []client.Object{
		&kumav1alpha1.Mesh{}, &kumav1alpha1.Dataplane{}, &kumav1alpha1.ZoneIngress{}, &kumav1alpha1.MeshService{},
		&kumav1alpha1.MeshMultiZoneService{}, &kumav1alpha1.MeshTimeout{}, &kumav1alpha1.MeshRetry{}, &kumav1alpha1.MeshCircuitBreaker{},
		&kumav1alpha1.MeshLoadBalancingStrategy{}, &kumav1alpha1.MeshHTTPRoute{}, &kumav1alpha1.MeshTCPRoute{},
	}
	if p.Where.Environment == desired.Kubernetes {
		kinds = append(kinds, &corev1.Service{})
	}
	return kinds
}

// Start publishes until the context ends. The first configurations are built when all informers have synced, and a mesh is
// not served until its VIPs are recorded.
func (p *Publisher) Start(ctx context.Context) error {
	var synced []toolscache.InformerSynced
	for _, kind := range append(p.kinds(), &corev1.ConfigMap{}) {
		informer, err := p.Cache.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: p.put, UpdateFunc: func(_, now any) { p.put(now) }, DeleteFunc: p.remove,
		})
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		defer func() { _ = informer.RemoveEventHandler(registration) }()
		synced = append(synced, registration.HasSynced)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	for {
		p.flush()
		select {
		case <-ctx.Done():
			return nil
		case <-p.changed:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(debounce):
		}
	}
}

func (p *Publisher) put(object any) {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		mesh := desired.MeshOf(o)
		if o.Name != desired.VIPConfigMap(mesh) {
			return
		}
		p.Engine.SetVIPs(mesh, o.Data)
		p.update(mesh, func(m *meshState) { m.served = true })
	case *kumav1alpha1.Mesh:
		p.Engine.Put(o)
		switched := consumers.Switched(o)
		p.Engine.SetSwitched(o.Name, switched)
		p.update(o.Name, func(m *meshState) { m.switched = switched })
	case client.Object:
		p.Engine.Put(o)
	}
	p.notify()
}

// remove deletes an object. VIPs stay in force when their ConfigMap is deleted: it is created again with the same.
func (p *Publisher) remove(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	switch o := object.(type) {
	case *corev1.ConfigMap:
		return
	case *kumav1alpha1.Mesh:
		p.update(o.Name, func(m *meshState) { *m = meshState{} })
		p.Engine.Delete(o)
	case client.Object:
		p.Engine.Delete(o)
	}
	p.notify()
}

func (p *Publisher) notify() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// flush publishes changed configurations, and all of a mesh that is served from now on. A mesh that changes during the flush
// counts as published by the next one.
func (p *Publisher) flush() {
	p.mu.Lock()
	served := maps.Clone(p.meshes)
	p.mu.Unlock()
	maps.DeleteFunc(served, func(_ string, m meshState) bool { return !m.served })
	for _, id := range p.Engine.Flush() {
		if config := p.Engine.Config(id); config == nil || p.state(id.Mesh).published {
			p.Store.Set(id, config)
		}
	}
	for mesh, was := range served {
		if !was.published {
			for _, proxy := range p.Engine.Proxies(mesh) {
				p.Store.Set(proxy.ID, p.Engine.Config(proxy.ID))
			}
		}
		p.update(mesh, func(m *meshState) {
			// The Mesh may be deleted meanwhile, and served again: the next flush publishes that one.
			if m.served && m.published == was.published {
				m.published, m.sent = true, was.switched
			}
		})
	}
	p.problemsMu.Lock()
	defer p.problemsMu.Unlock()
	clear(p.problems)
}

// update changes the state of a mesh, and forgets an empty one.
func (p *Publisher) update(mesh string, change func(*meshState)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.meshes[mesh]
	change(&m)
	if p.meshes[mesh] = m; !m.served && m.switched == nil {
		delete(p.meshes, mesh)
	}
}

func (p *Publisher) state(mesh string) meshState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.meshes[mesh]
}

// SwitchedConsumers returns the consumers of a mesh that are switched in the published configurations, and false before the
// first ones are published.
func (p *Publisher) SwitchedConsumers(mesh string) (map[string]bool, bool) {
	sent := p.state(mesh).sent
	return sent, sent != nil
}

// IsServed says whether the proxies of a mesh get configurations.
func (p *Publisher) IsServed(mesh string) bool { return p.state(mesh).served }

// Problems returns the problems of a mesh, computed once for each flush.
func (p *Publisher) Problems(mesh string) []snapshot.Problem {
	p.problemsMu.Lock()
	defer p.problemsMu.Unlock()
	known, found := p.problems[mesh]
	if !found {
		known = p.Engine.Problems(mesh)
		p.problems[mesh] = known
	}
	return known
}
