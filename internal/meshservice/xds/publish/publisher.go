// Package publish feeds objects from informers into the snapshot engine, and the configurations that the engine builds into
// the store of the xDS server.
package publish

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
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

// Store holds the configurations of proxies.
type Store interface {
	Set(model.ProxyID, *resource.Config)
	Forget(model.ProxyID)
}

// Publisher is a runnable of the leader.
type Publisher struct {
	Cache  cache.Cache
	Engine *snapshot.Engine
	Store  Store
	Where  desired.ZoneInfo

	changed  chan struct{}
	serving  servingGate
	switched switchedConsumers
	flushes  atomic.Int64

	mu       sync.Mutex
	problems map[string]cachedProblems
}

// New returns a publisher from the cache to the store.
func New(c cache.Cache, engine *snapshot.Engine, store Store, where desired.ZoneInfo) *Publisher {
	return &Publisher{Cache: c, Engine: engine, Store: store, Where: where, changed: make(chan struct{}, 1)}
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
		registration, err := informer.AddEventHandler(p.handler())
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

func (p *Publisher) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    p.put,
		UpdateFunc: func(_, now any) { p.put(now) },
		DeleteFunc: p.remove,
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
		p.serving.open(mesh)
	case *kumav1alpha1.Mesh:
		p.Engine.Put(o)
		switched := consumers.Switched(o)
		p.Engine.SetSwitched(o.Name, switched)
		p.switched.setWanted(o.Name, switched)
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
		p.Engine.Delete(o)
		p.serving.close(o.Name)
		p.switched.forget(o.Name)
		p.mu.Lock()
		delete(p.problems, o.Name)
		p.mu.Unlock()
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

// flush publishes changed configurations. Proxies of a mesh that is not served yet wait in the gate.
func (p *Publisher) flush() {
	wanted := p.switched.allWanted()
	// A mesh that is opened during this flush is published in full by the next one.
	maps.DeleteFunc(wanted, func(mesh string, _ map[string]bool) bool { return !p.serving.isOpen(mesh) })
	var changed []model.ProxyID
	for _, id := range p.Engine.Flush() {
		if p.Engine.Config(id) == nil {
			p.Store.Forget(id)
			continue
		}
		changed = append(changed, id)
	}
	for _, id := range p.serving.admit(changed) {
		if config := p.Engine.Config(id); config != nil {
			p.Store.Set(id, config)
		}
	}
	for mesh, consumers := range wanted {
		p.switched.setPublished(mesh, consumers)
	}
	p.flushes.Add(1)
}

// SwitchedConsumers returns the consumers of a mesh that are switched in the published configurations, and false before the
// first ones are published.
func (p *Publisher) SwitchedConsumers(mesh string) (map[string]bool, bool) {
	return p.switched.get(mesh)
}

// Problems returns the problems of a mesh, computed once for each flush.
func (p *Publisher) Problems(mesh string) []snapshot.Problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.flushes.Load()
	if known, found := p.problems[mesh]; found && known.flushes == now {
		return known.problems
	}
	known := cachedProblems{flushes: now, problems: p.Engine.Problems(mesh)}
	if p.problems == nil {
		p.problems = map[string]cachedProblems{}
	}
	p.problems[mesh] = known
	return known.problems
}

// cachedProblems are the problems of a mesh at a flush.
type cachedProblems struct {
	flushes  int64
	problems []snapshot.Problem
}

// IsServed says whether the proxies of a mesh get configurations.
func (p *Publisher) IsServed(mesh string) bool { return p.serving.isOpen(mesh) }
