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

	"github.com/go-logr/logr"
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
	Log    logr.Logger

	changed  chan struct{}
	serving  servingGate
	switched switchedConsumers
	flushes  atomic.Int64

	mu       sync.Mutex
	problems map[string]cachedProblems
}

// New returns a publisher from the cache to the store.
func New(c cache.Cache, engine *snapshot.Engine, store Store, where desired.ZoneInfo, log logr.Logger) *Publisher {
	return &Publisher{Cache: c, Engine: engine, Store: store, Where: where, Log: log, changed: make(chan struct{}, 1)}
}

// kinds are the kinds that the engine reads.
func (f *Publisher) kinds() []client.Object {
	kinds := []client.Object{
		&kumav1alpha1.Mesh{}, &kumav1alpha1.Dataplane{}, &kumav1alpha1.ZoneIngress{}, &kumav1alpha1.MeshService{},
		&kumav1alpha1.MeshMultiZoneService{}, &kumav1alpha1.MeshTimeout{}, &kumav1alpha1.MeshRetry{}, &kumav1alpha1.MeshCircuitBreaker{},
		&kumav1alpha1.MeshLoadBalancingStrategy{}, &kumav1alpha1.MeshHTTPRoute{}, &kumav1alpha1.MeshTCPRoute{},
	}
	if f.Where.Environment == desired.Kubernetes {
		kinds = append(kinds, &corev1.Service{})
	}
	return kinds
}

// Start publishes until the context ends. The first configurations are built when all informers have synced, and a mesh is
// not served until its VIPs are recorded.
func (f *Publisher) Start(ctx context.Context) error {
	var synced []toolscache.InformerSynced
	for _, kind := range append(f.kinds(), &corev1.ConfigMap{}) {
		informer, err := f.Cache.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(f.handler())
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
		f.flush()
		select {
		case <-ctx.Done():
			return nil
		case <-f.changed:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(debounce):
		}
	}
}

func (f *Publisher) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    f.put,
		UpdateFunc: func(_, now any) { f.put(now) },
		DeleteFunc: f.remove,
	}
}

func (f *Publisher) put(object any) {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		mesh := desired.MeshOf(o)
		if o.Name != desired.TagsConfigMap(mesh) {
			return
		}
		f.Engine.SetTags(mesh, o.Data)
		f.serving.open(mesh)
	case *kumav1alpha1.Mesh:
		f.Engine.Put(o)
		switched := consumers.Switched(o)
		f.Engine.SetSwitched(o.Name, switched)
		f.switched.want(o.Name, switched)
	case client.Object:
		f.Engine.Put(o)
	}
	f.notify()
}

// remove deletes an object. VIPs stay in force when their ConfigMap is deleted: it is created again with the same.
func (f *Publisher) remove(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	switch o := object.(type) {
	case *corev1.ConfigMap:
		return
	case *kumav1alpha1.Mesh:
		f.Engine.Delete(o)
		f.serving.close(o.Name)
		f.switched.forget(o.Name)
		f.mu.Lock()
		delete(f.problems, o.Name)
		f.mu.Unlock()
	case client.Object:
		f.Engine.Delete(o)
	}
	f.notify()
}

func (f *Publisher) notify() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// flush publishes changed configurations. Proxies of a mesh that is not served yet wait in the gate.
func (f *Publisher) flush() {
	asked := f.switched.pending()
	// A mesh that is opened during this flush is published in full by the next one.
	maps.DeleteFunc(asked, func(mesh string, _ map[string]bool) bool { return !f.serving.isOpen(mesh) })
	var changed []model.ProxyID
	for _, id := range f.Engine.Flush() {
		if f.Engine.Config(id) == nil {
			f.Store.Forget(id)
			continue
		}
		changed = append(changed, id)
	}
	for _, id := range f.serving.admit(changed) {
		if config := f.Engine.Config(id); config != nil {
			f.Store.Set(id, config)
		}
	}
	for mesh, consumers := range asked {
		f.switched.published(mesh, consumers)
	}
	f.flushes.Add(1)
}

// SwitchedConsumers returns the consumers of a mesh that are switched in the published configurations, and false before the
// first ones are published.
func (f *Publisher) SwitchedConsumers(mesh string) (map[string]bool, bool) {
	return f.switched.get(mesh)
}

// Problems returns the problems of a mesh, computed once for each flush.
func (f *Publisher) Problems(mesh string) []snapshot.Problem {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.flushes.Load()
	if known, found := f.problems[mesh]; found && known.flushes == now {
		return known.problems
	}
	known := cachedProblems{flushes: now, problems: f.Engine.Problems(mesh)}
	if f.problems == nil {
		f.problems = map[string]cachedProblems{}
	}
	f.problems[mesh] = known
	return known.problems
}

// cachedProblems are the problems of a mesh at a flush.
type cachedProblems struct {
	flushes  int64
	problems []snapshot.Problem
}

// IsServed says whether the proxies of a mesh get configurations.
func (f *Publisher) IsServed(mesh string) bool { return f.serving.isOpen(mesh) }
