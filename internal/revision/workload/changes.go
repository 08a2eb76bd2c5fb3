package workload

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// How long changes of workloads are collected before a plan is made, during a migration and otherwise. A plan looks at all
// workloads, and changes only with a decisive change: progress shows in the counters of the status, which are not written more
// often.
const (
	debounceMoving   = 50 * time.Millisecond
	debounceIdle     = time.Second
	debounceProgress = counterStatusInterval
)

// changes are what has changed in the inventory since it was last looked at.
type changes struct{ decisive, progress chan struct{} }

func newChanges() changes { return changes{make(chan struct{}, 1), make(chan struct{}, 1)} }

// add does not block.
func (c changes) add(change inventory.Change) {
	to := c.decisive
	if change == inventory.Progress {
		to = c.progress
	}
	select {
	case to <- struct{}{}:
	default:
	}
}

// enqueueOnChange enqueues every Istio that moves workloads when the inventory changes.
func (r *reconciler) enqueueOnChange(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			var least time.Duration
			select {
			case <-ctx.Done():
				return
			case <-r.changes.decisive:
			case <-r.changes.progress:
				least = debounceProgress
			}
			for _, request := range r.migratingIstios(ctx) {
				queue.AddAfter(request, max(least, r.debounce(ctx, request.Name)))
			}
			// Changes within this time are enqueued together.
			select {
			case <-ctx.Done():
				return
			case <-time.After(debounceMoving):
			}
		}
	}()
	return nil
}

func (r *reconciler) debounce(ctx context.Context, istio string) time.Duration {
	var i v1.Istio
	if err := r.cache.Get(ctx, client.ObjectKey{Name: istio}, &i); err == nil && i.Status.WorkloadMigration != nil &&
		i.Status.WorkloadMigration.State == v1.WorkloadMigrationStateInProgress {
		return 0
	}
	return debounceIdle
}
