package work

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// maxWorkers is how many Works are reconciled concurrently, of model.MaxConcurrent of one cluster: a cluster that answers slowly, or
// asks to be called again in an hour, holds up its own Works only.
const maxWorkers = 8 * model.MaxConcurrent

// clusterLimiter reconciles a limited number of Works of each cluster concurrently. The others wait without a worker.
type clusterLimiter struct {
	reconcile.Reconciler
	limit   int
	enqueue func(client.ObjectKey)

	mu       sync.Mutex
	clusters map[string]*clusterLoad
}

// clusterLoad is what is reconciled, and what waits, of a cluster.
type clusterLoad struct {
	running int
	// queue has what waits in the order in which it came.
	waiting sets.Set[reconcile.Request]
	queue   []reconcile.Request
}

func newClusterLimiter(r reconcile.Reconciler, limit int, enqueue func(client.ObjectKey)) *clusterLimiter {
	return &clusterLimiter{Reconciler: r, limit: limit, enqueue: enqueue, clusters: map[string]*clusterLoad{}}
}

// Reconcile reconciles a Work, or has it enqueued when another of its cluster is done.
func (l *clusterLimiter) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !l.begin(request) {
		return reconcile.Result{}, nil
	}
	defer l.end(request)
	return l.Reconciler.Reconcile(ctx, request)
}

func (l *clusterLimiter) begin(request reconcile.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	load := l.clusters[request.Namespace]
	if load == nil {
		load = &clusterLoad{waiting: sets.New[reconcile.Request]()}
		l.clusters[request.Namespace] = load
	}
	if load.running < l.limit {
		load.running++
		return true
	}
	if !load.waiting.Has(request) {
		load.waiting.Insert(request)
		load.queue = append(load.queue, request)
	}
	return false
}

func (l *clusterLimiter) end(request reconcile.Request) {
	l.mu.Lock()
	load := l.clusters[request.Namespace]
	load.running--
	var next []reconcile.Request
	if len(load.queue) > 0 {
		next, load.queue = load.queue[:1], load.queue[1:]
		load.waiting.Delete(next...)
	} else if load.running == 0 {
		delete(l.clusters, request.Namespace)
	}
	l.mu.Unlock()
	for _, r := range next {
		l.enqueue(r.NamespacedName)
	}
}
