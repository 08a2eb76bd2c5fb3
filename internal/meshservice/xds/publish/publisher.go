// Package publish brings what the cluster says to the proxies: from informers into the engine, and what the engine makes of it
// into the store that proxies are served from.
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

// debounce is how long changes are gathered: what one user's edit brings in several events reaches a proxy as one.
const debounce = 20 * time.Millisecond

// Store is where proxies get their configuration from.
type Store interface {
	Set(model.ProxyID, *resource.Config)
	Forget(model.ProxyID)
}

// Publisher is a runnable of the operator that leads.
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

// New feeds the store from the cache.
func New(c cache.Cache, engine *snapshot.Engine, store Store, where desired.ZoneInfo, log logr.Logger) *Publisher {
	return &Publisher{Cache: c, Engine: engine, Store: store, Where: where, Log: log, changed: make(chan struct{}, 1)}
}

// kinds are what the engine knows.
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

// Start feeds until the context ends. No proxy is served from a part of what there is: all informers have told everything
// before the first configuration is made, and a mesh waits for the addresses of its tags.
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

// A ConfigMap that goes leaves its addresses in force: it is made again, with the same.
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

// flush hands over what has changed. The proxies of a mesh that waits are kept in mind until it may be served.
func (f *Publisher) flush() {
	asked := f.switched.pending()
	// A mesh that may be served from now on is served in full the next time only.
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

// SwitchedConsumers are the consumers of a mesh that are switched in what its proxies were last given. It is false as long as they have been
// given nothing.
func (f *Publisher) SwitchedConsumers(mesh string) (map[string]bool, bool) {
	return f.switched.get(mesh)
}

// Problems are what could not be made for a mesh. The answer is worked out once for each change.
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

// cachedProblems are the problems of a mesh after so many flushes.
type cachedProblems struct {
	flushes  int64
	problems []snapshot.Problem
}

// IsServed says whether the proxies of a mesh are given their configuration.
func (f *Publisher) IsServed(mesh string) bool { return f.serving.isOpen(mesh) }
