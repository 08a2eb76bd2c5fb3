package cli

import (
	"context"
	"maps"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// lookout tells about a resource whenever something about it may have changed.
type lookout struct {
	tell    func(context.Context) (account, error)
	changed <-chan struct{}
}

// pollEvery is how often to look at what tells no changes by itself.
const pollEvery = 2 * time.Second

// lookOut follows a resource until the context ends.
func (c *cluster) lookOut(ctx context.Context, r resource) (lookout, error) {
	switch r.kind() {
	case istios:
		return c.followIstio(ctx, r)
	case materializes:
		return c.followMaterialize(ctx, r)
	case policies, clusterPolicies:
		return c.followPolicy(ctx, r)
	case meshes:
		return c.followMesh(ctx, r)
	}
	changed := make(chan struct{}, 1)
	go func() {
		for tick := time.NewTicker(pollEvery); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				notify(changed)
			}
		}
	}()
	return lookout{func(ctx context.Context) (account, error) { return c.account(ctx, r, question{}) }, changed}, nil
}

// followIstio keeps what the operator keeps: an Istio may have thousands of workloads, which nobody should list again and
// again to watch a few of them.
func (c *cluster) followIstio(ctx context.Context, r resource) (lookout, error) {
	kept := inventory.CacheOptions()
	maps.Copy(kept, usage.CacheOptions())
	f, err := c.follow(cache.Options{ByObject: kept})
	if err != nil {
		return lookout{}, err
	}
	workloads := inventory.New(f.notify)
	fed, err := workloads.Watch(ctx, f.informers, f.informers)
	if err != nil {
		return lookout{}, err
	}
	users, err := usage.NewTracker(ctx, f.informers, f.informers)
	if err != nil {
		return lookout{}, err
	}
	if err := f.hearOf(ctx, &v1.Istio{}, &v1.IstioRevision{}, &v1.IstioRevisionTag{}); err != nil {
		return lookout{}, err
	}
	// All that is there must have been heard of: half of the workloads may be done when the others are not.
	if err := f.start(ctx, func() bool { return fed() && users.HasSynced() }); err != nil {
		return lookout{}, err
	}
	return lookout{f.telling(func(ctx context.Context) (account, error) {
		return tellOfIstio(ctx, f.informers, r.key, question{}, users, workloads.Snapshot())
	}), f.changed}, nil
}
