package cli

import (
	"context"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// watchIstio keeps what the operator keeps: an Istio may have thousands of workloads, which nobody should list again and
// again to watch a few of them.
func watchIstio(ctx context.Context, c *connect.Cluster, r connect.Resource) (watcher, error) {
	kept := inventory.CacheOptions()
	maps.Copy(kept, usage.CacheOptions())
	f, err := newWatchCache(c, cache.Options{ByObject: kept})
	if err != nil {
		return watcher{}, err
	}
	workloads := inventory.New(f.notify)
	fed, err := workloads.Watch(ctx, f.informers, f.informers)
	if err != nil {
		return watcher{}, err
	}
	users, err := usage.NewTracker(ctx, f.informers, f.informers)
	if err != nil {
		return watcher{}, err
	}
	if err := f.watchKinds(ctx, &v1.Istio{}, &v1.IstioRevision{}, &v1.IstioRevisionTag{}); err != nil {
		return watcher{}, err
	}
	// All that is there must have been heard of: half of the workloads may be done when the others are not.
	if err := f.start(ctx, func() bool { return fed() && users.HasSynced() }); err != nil {
		return watcher{}, err
	}
	return watcher{f.failOnError(func(ctx context.Context) (account, error) {
		return reportIstioFrom(ctx, f.informers, r.Key, query{}, users, workloads.Snapshot())
	}), f.changed}, nil
}
