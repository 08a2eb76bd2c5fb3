package cli

import (
	"context"
	"fmt"
	"maps"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/migration/fleet"
	"github.com/fairlead/fairlead/internal/revision/usage"
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
	if r.mapping.GroupVersionKind.GroupKind() == v1.GroupVersion.WithKind(v1.IstioKind).GroupKind() {
		return c.followIstio(ctx, r)
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

func notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// followIstio keeps what the operator keeps: an Istio may have thousands of workloads, which nobody should list again and
// again to watch a few of them.
func (c *cluster) followIstio(ctx context.Context, r resource) (lookout, error) {
	kept := fleet.CacheOptions()
	maps.Copy(kept, usage.CacheOptions())
	informers, err := cache.New(c.config, cache.Options{Scheme: c.client.Scheme(), Mapper: c.mapper, ByObject: kept})
	if err != nil {
		return lookout{}, fmt.Errorf("watch the cluster: %w", err)
	}
	changed := make(chan struct{}, 1)
	workloads := fleet.New(func() { notify(changed) })
	if _, err := workloads.Feed(ctx, informers, informers); err != nil {
		return lookout{}, err
	}
	users, err := usage.NewTracker(ctx, informers, informers)
	if err != nil {
		return lookout{}, err
	}
	for _, kind := range []client.Object{&v1.Istio{}, &v1.IstioRevision{}, &v1.IstioRevisionTag{}} {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return lookout{}, fmt.Errorf("watch %T: %w", kind, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { notify(changed) },
			UpdateFunc: func(any, any) { notify(changed) },
			DeleteFunc: func(any) { notify(changed) },
		})
		if err != nil {
			return lookout{}, fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	failed := make(chan error, 1)
	go func() { failed <- informers.Start(ctx) }()
	if !informers.WaitForCacheSync(ctx) {
		return lookout{}, fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
	}
	return lookout{func(ctx context.Context) (account, error) {
		return tellOfIstio(ctx, informers, r.key, question{}, users, workloads.Picture())
	}, changed}, nil
}
