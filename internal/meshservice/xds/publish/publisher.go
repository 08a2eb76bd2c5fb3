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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
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

// Publisher is a runnable of the process that serves proxies, and of the operator.
type Publisher struct {
	Cache  cache.Cache
	Engine *snapshot.Engine
	Store  Store
	Where  desired.ZoneInfo

	changed chan struct{}
	// started is closed after the first flush.
	started chan struct{}
	// switchedListeners are called after configurations with other switched consumers are published.
	switchedListeners []func(mesh string)

	mu     sync.Mutex
	meshes map[string]meshState
	// recorded are the switched consumers by mesh and MeshConsumerSlice. They outlive the Mesh, which may be created again.
	recorded map[string]map[string]map[string]bool
	// inStatus are those of meshes whose status has the record, as earlier versions write it: slices do not count then.
	inStatus map[string]map[string]bool
	// vips are the recorded VIPs by mesh.
	vips map[string]vipShards
	// switched are those of the engine by mesh, and stale the meshes that have others recorded. Both are used by flush.
	switched map[string]map[string]bool
	stale    map[string]bool

	problemsMu sync.Mutex
	// problems are those since the last flush, by mesh.
	problems map[string][]snapshot.Problem
}

// vipShards are the VIPs of a mesh by shard, recorded for the Mesh with this UID.
type vipShards struct {
	owner  types.UID
	shards map[int]map[string]string
}

// meshState is how far a mesh is published.
type meshState struct {
	// exists says that there is a Mesh, with this UID.
	exists bool
	uid    types.UID
	// recorded says that the VIPs are recorded, for the Mesh with this UID.
	recorded    bool
	recordedFor types.UID
	// published says that all proxies have got a configuration since the mesh is served.
	published bool
	// sent are the switched consumers of the published configurations, nil before the first.
	sent map[string]bool
}

// served says that the mesh has its VIPs. Those of a Mesh that is created again are recorded again.
func (m meshState) served() bool { return m.exists && m.recorded && m.uid == m.recordedFor }

// Started is closed when the first configurations are published.
func (p *Publisher) Started() <-chan struct{} { return p.started }

// OnSwitched registers a function to call, without locks, after configurations of a mesh with other switched consumers are
// published, and with the first ones. It is called before the publisher starts.
func (p *Publisher) OnSwitched(f func(mesh string)) {
	p.switchedListeners = append(p.switchedListeners, f)
}

// New returns a publisher from the cache to the store.
func New(c cache.Cache, engine *snapshot.Engine, store Store, where desired.ZoneInfo) *Publisher {
	return &Publisher{
		Cache: c, Engine: engine, Store: store, Where: where, changed: make(chan struct{}, 1), started: make(chan struct{}),
		meshes: map[string]meshState{}, problems: map[string][]snapshot.Problem{},
		recorded: map[string]map[string]map[string]bool{}, inStatus: map[string]map[string]bool{}, switched: map[string]map[string]bool{}, stale: map[string]bool{},
		vips: map[string]vipShards{},
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

// namespaces are observed by their metadata.
var namespaces = &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}

// Start publishes until the context ends. The first configurations are built when all informers have synced, and a mesh is
// not served until its VIPs are recorded.
func (p *Publisher) Start(ctx context.Context) error {
	var synced []toolscache.InformerSynced
	kinds := append(p.kinds(), &corev1.ConfigMap{}, &fairleadv1alpha1.MeshConsumerSlice{})
	if p.Where.Environment == desired.Kubernetes {
		kinds = append([]client.Object{namespaces}, kinds...)
	}
	for _, kind := range kinds {
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
		// The rules of namespaces come first: each that changes later sets the objects of the namespace again.
		if kind == client.Object(namespaces) && !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return nil
		}
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	for first := true; ; first = false {
		p.flush()
		if first {
			close(p.started)
		}
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
		if !p.putVIPs(o) {
			return
		}
	case *kumav1alpha1.Mesh:
		p.Engine.Put(o)
		p.update(o.Name, func(m *meshState) { m.exists, m.uid = true, o.UID })
		p.recordStatus(o)
	case *fairleadv1alpha1.MeshConsumerSlice:
		p.record(o.Mesh, o.Name, consumers.SwitchedIn(o))
	case *metav1.PartialObjectMetadata:
		p.Engine.PutNamespace(o)
	case client.Object:
		p.Engine.Put(o)
	}
	p.notify()
}

// putVIPs takes a shard of the VIPs of a mesh, and says whether it is one. The first shard is written last.
func (p *Publisher) putVIPs(record *corev1.ConfigMap) bool {
	mesh := desired.MeshOf(record)
	shard, found := desired.ShardOf(record.Name, mesh)
	if !found {
		return false
	}
	var owner types.UID
	if mesh := metav1.GetControllerOf(record); mesh != nil {
		owner = mesh.UID
	}
	p.mu.Lock()
	all := p.vips[mesh]
	if all.owner != owner || all.shards == nil {
		// Those of an earlier Mesh of the name are obsolete.
		all = vipShards{owner: owner, shards: map[int]map[string]string{}}
	}
	all.shards[shard] = record.Data
	p.vips[mesh] = all
	merged := map[string]string{}
	for _, vips := range all.shards {
		maps.Copy(merged, vips)
	}
	p.mu.Unlock()
	p.Engine.SetVIPs(mesh, merged)
	if shard == 0 {
		p.update(mesh, func(m *meshState) { m.recorded, m.recordedFor = true, owner })
	}
	return true
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
		p.update(o.Name, func(m *meshState) { *m = meshState{recorded: m.recorded, recordedFor: m.recordedFor} })
		p.recordStatus(&kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: o.Name}})
		p.Engine.Delete(o)
	case *fairleadv1alpha1.MeshConsumerSlice:
		p.record(o.Mesh, o.Name, nil)
	case *metav1.PartialObjectMetadata:
		p.Engine.DeleteNamespace(o.Name)
	case client.Object:
		p.Engine.Delete(o)
	}
	p.notify()
}

// record records the switched consumers of a slice; nil deletes it.
func (p *Publisher) record(mesh, slice string, switched map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if maps.Equal(p.recorded[mesh][slice], switched) {
		return
	}
	p.stale[mesh] = true
	if p.recorded[mesh] == nil {
		p.recorded[mesh] = map[string]map[string]bool{}
	}
	if p.recorded[mesh][slice] = switched; len(switched) == 0 {
		delete(p.recorded[mesh], slice)
	}
	if len(p.recorded[mesh]) == 0 {
		delete(p.recorded, mesh)
	}
}

// recordStatus records the switched consumers in the status of a Mesh, if that has the record.
func (p *Publisher) recordStatus(mesh *kumav1alpha1.Mesh) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, had := p.inStatus[mesh.Name]
	has, switched := consumers.IsInStatus(mesh), consumers.Switched(mesh)
	if has == had && maps.Equal(before, switched) {
		return
	}
	p.stale[mesh.Name] = true
	if p.inStatus[mesh.Name] = switched; !has {
		delete(p.inStatus, mesh.Name)
	}
}

// switchedBy returns the consumers that slices record as switched.
func switchedBy(slices map[string]map[string]bool) map[string]bool {
	all := map[string]bool{}
	for _, switched := range slices {
		maps.Copy(all, switched)
	}
	return all
}

// RecordedConsumers returns the consumers of a mesh that are switched by its MeshConsumerSlices, published or not.
func (p *Publisher) RecordedConsumers(mesh string) map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return switchedBy(p.recorded[mesh])
}

// takeSwitched returns the switched consumers of meshes in which they have changed since the last call.
func (p *Publisher) takeSwitched() map[string]map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := map[string]map[string]bool{}
	for mesh := range p.stale {
		all, has := p.inStatus[mesh]
		if !has {
			all = switchedBy(p.recorded[mesh])
		}
		changed[mesh] = all
		if p.switched[mesh] = all; len(all) == 0 {
			delete(p.switched, mesh)
		}
	}
	clear(p.stale)
	return changed
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
	changed := p.takeSwitched()
	for mesh, switched := range changed {
		p.Engine.SetSwitched(mesh, switched)
	}
	p.mu.Lock()
	served := maps.Clone(p.meshes)
	p.mu.Unlock()
	maps.DeleteFunc(served, func(_ string, m meshState) bool { return !m.served() })
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
			if m.served() && m.published == was.published {
				m.published, m.sent = true, switchedIn(p.switched, mesh)
			}
		})
		if _, other := changed[mesh]; other || !was.published {
			for _, listener := range p.switchedListeners {
				listener(mesh)
			}
		}
	}
	p.problemsMu.Lock()
	defer p.problemsMu.Unlock()
	clear(p.problems)
}

// switchedIn is never nil: that means that nothing is published.
func switchedIn(all map[string]map[string]bool, mesh string) map[string]bool {
	if switched := all[mesh]; switched != nil {
		return switched
	}
	return map[string]bool{}
}

// update changes the state of a mesh, and forgets an empty one.
func (p *Publisher) update(mesh string, change func(*meshState)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.meshes[mesh]
	change(&m)
	if p.meshes[mesh] = m; !m.exists && !m.recorded {
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
func (p *Publisher) IsServed(mesh string) bool { return p.state(mesh).served() }

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
