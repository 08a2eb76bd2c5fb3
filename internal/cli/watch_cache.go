package cli

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/cli/connect"
)

// watchCache keeps a copy of what is looked at, and notes that it has changed.
type watchCache struct {
	informers cache.Cache
	changed   chan struct{}
	errors    chan error
}

// syncInterval is how often to look whether all that exists has been received.
const syncInterval = 20 * time.Millisecond

// newWatchCache looks at what the options say.
func newWatchCache(c *connect.Cluster, options cache.Options) (*watchCache, error) {
	f := &watchCache{changed: make(chan struct{}, 1), errors: make(chan error, 1)}
	options.Scheme, options.Mapper = c.Client.Scheme(), c.Mapper
	// A cache tries for ever. Who may not see something should hear of it.
	options.DefaultWatchErrorHandler = func(_ context.Context, _ *toolscache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			select {
			case f.errors <- err:
			default:
			}
		}
	}
	var err error
	if f.informers, err = cache.New(c.Config, options); err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	return f, nil
}

func (f *watchCache) notify() { notify(f.changed) }

func notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// watchKinds makes every change to an object of these kinds one to draw.
func (f *watchCache) watchKinds(ctx context.Context, kinds ...client.Object) error {
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

// start returns when all that is there has been received, and whoever else keeps a copy is ready.
func (f *watchCache) start(ctx context.Context, ready func() bool) error {
	go func() { f.errors <- f.informers.Start(ctx) }()
	synced := make(chan bool, 1)
	go func() { synced <- f.informers.WaitForCacheSync(ctx) }()
	for ok := false; !ok || !ready(); {
		select {
		case err := <-f.errors:
			return fmt.Errorf("watch the cluster: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
		case ok = <-synced:
			if !ok {
				return fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
			}
		case <-time.After(syncInterval):
		}
	}
	return nil
}

// failOnError tells, unless there is something that may not be seen.
func (f *watchCache) failOnError(tell func(context.Context) (account, error)) func(context.Context) (account, error) {
	return func(ctx context.Context) (account, error) {
		select {
		case err := <-f.errors:
			return account{}, fmt.Errorf("watch the cluster: %w", err)
		default:
		}
		return tell(ctx)
	}
}
