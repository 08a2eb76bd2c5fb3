package cli

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// syncPause is how often to look whether all that exists has been heard of.
const syncPause = 20 * time.Millisecond

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
	refused := make(chan error, 1)
	informers, err := cache.New(c.config, cache.Options{
		Scheme: c.client.Scheme(), Mapper: c.mapper, ByObject: kept,
		// A cache tries for ever. Who may not see something should hear of it.
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			if apierrors.IsForbidden(err) {
				select {
				case refused <- err:
				default:
				}
			}
		},
	})
	if err != nil {
		return lookout{}, fmt.Errorf("watch the cluster: %w", err)
	}
	changed := make(chan struct{}, 1)
	workloads := fleet.New(func() { notify(changed) })
	fed, err := workloads.Feed(ctx, informers, informers)
	if err != nil {
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
	go func() { refused <- informers.Start(ctx) }()
	// All that is there must have been heard of: half of the workloads may be done when the others are not.
	for !fed() || !users.HasSynced() {
		select {
		case err := <-refused:
			return lookout{}, fmt.Errorf("watch the cluster: %w", err)
		case <-ctx.Done():
			return lookout{}, fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
		case <-time.After(syncPause):
		}
	}
	if !informers.WaitForCacheSync(ctx) {
		return lookout{}, fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
	}
	return lookout{func(ctx context.Context) (account, error) {
		select {
		case err := <-refused:
			return account{}, fmt.Errorf("watch the cluster: %w", err)
		default:
		}
		return tellOfIstio(ctx, informers, r.key, question{}, users, workloads.Picture())
	}, changed}, nil
}
