package istio

import (
	"context"
	"maps"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// Watch keeps the inventory that the operator keeps: an Istio may have thousands of workloads, too many to list again and
// again.
func (k *Kind) Watch(ctx context.Context, c *connect.Cluster, r connect.Resource) (kind.Watch, error) {
	kept := inventory.CacheOptions()
	maps.Copy(kept, usage.CacheOptions())
	w, err := kind.NewWatchCache(c, cache.Options{ByObject: kept})
	if err != nil {
		return kind.Watch{}, err
	}
	workloads := inventory.New(w.Notify)
	workloadsSynced, err := workloads.Watch(ctx, w, w)
	if err != nil {
		return kind.Watch{}, err
	}
	users, err := usage.NewTracker(ctx, w, w)
	if err != nil {
		return kind.Watch{}, err
	}
	if err := w.WatchKinds(ctx, &v1.Istio{}, &v1.IstioRevision{}, &v1.IstioRevisionTag{}); err != nil {
		return kind.Watch{}, err
	}
	// With half of the workloads, all of them may seem done.
	if err := w.Run(ctx, workloadsSynced, users.HasSynced); err != nil {
		return kind.Watch{}, err
	}
	return w.Watch(func(ctx context.Context) (render.Status, error) {
		o, err := k.observeFrom(ctx, w, r.Key.Name, users, workloads.Snapshot())
		if err != nil {
			return nil, err
		}
		return newStatus(o, time.Now()), nil
	}), nil
}
