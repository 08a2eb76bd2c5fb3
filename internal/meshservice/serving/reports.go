package serving

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

const (
	checkInterval = time.Second
	// forgetAfter is how long the reports of a process that has ended are kept.
	forgetAfter = time.Minute
)

// Reports is a runnable that reads the reports of all processes that serve proxies. A process that has not renewed its reports
// for a while is left out, by the clock of this one.
type Reports struct {
	// namespaced says that the ids of nodes end in a namespace.
	namespaced bool
	cache      cache.Cache
	writer     client.Writer
	log        logr.Logger
	now        func() time.Time
	synced     atomic.Bool

	mu        sync.Mutex
	replicas  map[string]*replica
	listeners []func(model.ProxyID)
}

// replica is a process that serves proxies.
type replica struct {
	// reports are the states of its proxies by the name of the report.
	reports  map[string]map[model.ProxyID]state
	recorded map[string]string
	// renewed is when a report was last seen to change.
	renewed time.Time
	ended   bool
}

// +kubebuilder:rbac:groups=fairlead.dev,resources=meshservingreports,verbs=list;watch;delete

// NewReports returns a reader of reports.
func NewReports(c cache.Cache, writer client.Writer, namespaced bool, log logr.Logger) *Reports {
	return &Reports{namespaced: namespaced, cache: c, writer: writer, log: log, now: time.Now, replicas: map[string]*replica{}}
}

// Start reads until the context ends.
func (r *Reports) Start(ctx context.Context) error {
	informer, err := r.cache.GetInformer(ctx, &fairleadv1alpha1.MeshServingReport{})
	if err != nil {
		return fmt.Errorf("watch MeshServingReports: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: r.put, UpdateFunc: func(_, now any) { r.put(now) }, DeleteFunc: r.remove,
	})
	if err != nil {
		return fmt.Errorf("watch MeshServingReports: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }()
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil
	}
	r.synced.Store(true)
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			r.forget(ctx, r.expire())
		}
	}
}

// Synced says that all reports are read.
func (r *Reports) Synced() bool { return r.synced.Load() }

// OnChange registers a function that is called, without locks, when the state of a proxy changes.
func (r *Reports) OnChange(f func(model.ProxyID)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(slices.Clone(r.listeners), f)
}

// Connection returns the state of a proxy.
func (r *Reports) Connection(id model.ProxyID) model.Connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	var c model.Connection
	for _, one := range r.replicas {
		if one.ended {
			continue
		}
		for _, states := range one.reports {
			if s, connected := states[id]; connected {
				c = merge(c, s.connection())
			}
		}
	}
	return c
}

// Replicas is how many processes serve proxies.
func (r *Reports) Replicas() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, one := range r.replicas {
		if !one.ended {
			n++
		}
	}
	return n
}

// HaveRecorded says whether all processes have read MeshConsumerSlices of a mesh by which these consumers are switched.
func (r *Reports) HaveRecorded(mesh string, consumers map[string]bool) bool {
	want := digest(consumers)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.replicas {
		if !one.ended && one.recorded[mesh] != want {
			return false
		}
	}
	return true
}

func (r *Reports) put(object any) {
	report, ok := object.(*fairleadv1alpha1.MeshServingReport)
	if !ok {
		return
	}
	states := statesOf(report, r.namespaced)
	r.mu.Lock()
	one := r.replicas[report.Replica]
	if one == nil {
		one = &replica{reports: map[string]map[model.ProxyID]state{}}
		r.replicas[report.Replica] = one
	}
	changed := changedIDs(one.reports[report.Name], states)
	one.reports[report.Name], one.renewed = states, r.now()
	if report.Name == shardName(report.Replica, 0) {
		one.recorded = report.Recorded
	}
	if one.ended {
		one.ended = false
		changed = one.ids()
	}
	r.mu.Unlock()
	r.notify(changed)
}

func (r *Reports) remove(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	report, ok := object.(*fairleadv1alpha1.MeshServingReport)
	if !ok {
		return
	}
	r.mu.Lock()
	var changed []model.ProxyID
	if one := r.replicas[report.Replica]; one != nil {
		changed = changedIDs(one.reports[report.Name], nil)
		delete(one.reports, report.Name)
		if len(one.reports) == 0 {
			delete(r.replicas, report.Replica)
		}
	}
	r.mu.Unlock()
	r.notify(changed)
}

// expire leaves out the processes that have not renewed their reports, and returns the reports to delete.
func (r *Reports) expire() (forgotten []string) {
	r.mu.Lock()
	now := r.now()
	var changed []model.ProxyID
	for name, one := range r.replicas {
		silent := now.Sub(one.renewed)
		if silent > expiry && !one.ended {
			one.ended = true
			changed = append(changed, one.ids()...)
			r.log.Info("a process that served proxies has ended", "replica", name, "proxies", len(one.ids()))
		}
		if silent > forgetAfter {
			for report := range one.reports {
				forgotten = append(forgotten, report)
			}
		}
	}
	r.mu.Unlock()
	r.notify(changed)
	return forgotten
}

// forget deletes reports.
func (r *Reports) forget(ctx context.Context, names []string) {
	for _, name := range names {
		report := &fairleadv1alpha1.MeshServingReport{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := r.writer.Delete(ctx, report); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
			r.log.Error(err, "deleting the MeshServingReport of a process that has ended failed and is retried", "name", name)
		}
	}
}

func (r *Reports) notify(changed []model.ProxyID) {
	r.mu.Lock()
	listeners := r.listeners
	r.mu.Unlock()
	for _, id := range changed {
		for _, listener := range listeners {
			listener(id)
		}
	}
}

// ids are the proxies of a process.
func (one *replica) ids() []model.ProxyID {
	var all []model.ProxyID
	for _, states := range one.reports {
		for id := range states {
			all = append(all, id)
		}
	}
	return all
}
