package cli

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follower keeps a copy of what is looked at, and notes that it has changed.
type follower struct {
	informers cache.Cache
	changed   chan struct{}
	refused   chan error
}

// syncPause is how often to look whether all that exists has been heard of.
const syncPause = 20 * time.Millisecond

// follow looks at what the options say.
func (c *cluster) follow(options cache.Options) (*follower, error) {
	f := &follower{changed: make(chan struct{}, 1), refused: make(chan error, 1)}
	options.Scheme, options.Mapper = c.client.Scheme(), c.mapper
	// A cache tries for ever. Who may not see something should hear of it.
	options.DefaultWatchErrorHandler = func(_ context.Context, _ *toolscache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			select {
			case f.refused <- err:
			default:
			}
		}
	}
	var err error
	if f.informers, err = cache.New(c.config, options); err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	return f, nil
}

func (f *follower) notify() { notify(f.changed) }

func notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// hearOf makes every change to an object of these kinds one to draw.
func (f *follower) hearOf(ctx context.Context, kinds ...client.Object) error {
	for _, kind := range kinds {
		informer, err := f.informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { f.notify() },
			UpdateFunc: func(any, any) { f.notify() },
			DeleteFunc: func(any) { f.notify() },
		})
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return nil
}

// start returns when all that is there has been heard of, and whoever else keeps a copy is ready.
func (f *follower) start(ctx context.Context, ready func() bool) error {
	go func() { f.refused <- f.informers.Start(ctx) }()
	synced := make(chan bool, 1)
	go func() { synced <- f.informers.WaitForCacheSync(ctx) }()
	for heard := false; !heard || !ready(); {
		select {
		case err := <-f.refused:
			return fmt.Errorf("watch the cluster: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
		case heard = <-synced:
			if !heard {
				return fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
			}
		case <-time.After(syncPause):
		}
	}
	return nil
}

// telling tells, unless there is something that may not be seen.
func (f *follower) telling(tell func(context.Context) (account, error)) func(context.Context) (account, error) {
	return func(ctx context.Context) (account, error) {
		select {
		case err := <-f.refused:
			return account{}, fmt.Errorf("watch the cluster: %w", err)
		default:
		}
		return tell(ctx)
	}
}
