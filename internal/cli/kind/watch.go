package kind

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/render"
)

// Watch reads a status whenever something about a resource may have changed.
type Watch struct {
	Status  func(context.Context) (render.Status, error)
	Changed <-chan struct{}
	// Interval is how often to read the status without a change.
	Interval time.Duration
}

// The intervals of a watch without a cache, and of one with a cache: times in a status change without events.
const (
	pollInterval   = 2 * time.Second
	redrawInterval = 5 * time.Second
)

// NewWatch watches a resource until the context ends.
func NewWatch(ctx context.Context, k Kind, r connect.Resource) (Watch, error) {
	if w, ok := k.(Watcher); ok {
		return w.Watch(ctx, r)
	}
	poll := func(ctx context.Context) (render.Status, error) { return k.Status(ctx, r.Cluster.Client, r) }
	return Watch{Status: poll, Interval: pollInterval}, nil
}

// NewCachedWatch reads the status from a cache of objects of these kinds, whenever one of them changes.
func NewCachedWatch(ctx context.Context, r connect.Resource, options cache.Options, kinds []client.Object,
	status func(context.Context, client.Reader, connect.Resource) (render.Status, error),
) (Watch, error) {
	w, err := NewWatchCache(r.Cluster, options)
	if err == nil {
		err = w.WatchKinds(ctx, kinds...)
	}
	if err == nil {
		err = w.Run(ctx)
	}
	if err != nil {
		return Watch{}, err
	}
	return w.Watch(func(ctx context.Context) (render.Status, error) { return status(ctx, w, r) }), nil
}

// WatchCache keeps a copy of the objects that a status is made of, and tells when they change.
type WatchCache struct {
	cache.Cache
	changed chan struct{}
	errors  chan error
}

// NewWatchCache returns a cache that is yet to be started.
func NewWatchCache(c *connect.Cluster, options cache.Options) (*WatchCache, error) {
	w := &WatchCache{changed: make(chan struct{}, 1), errors: make(chan error, 1)}
	options.Scheme, options.Mapper = c.Client.Scheme(), c.Mapper
	// A cache retries for ever. Missing permissions are an error.
	options.DefaultWatchErrorHandler = func(_ context.Context, _ *toolscache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			select {
			case w.errors <- err:
			default:
			}
		}
	}
	var err error
	if w.Cache, err = cache.New(c.Config, options); err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	return w, nil
}

// Notify has the status read again.
func (w *WatchCache) Notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// WatchKinds has the status read again after every change to an object of these kinds, as far as the cluster serves them.
func (w *WatchCache) WatchKinds(ctx context.Context, kinds ...client.Object) error {
	for _, kind := range kinds {
		informer, err := w.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if meta.IsNoMatchError(err) {
			continue
		}
		if err == nil {
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc:    func(any) { w.Notify() },
				UpdateFunc: func(any, any) { w.Notify() },
				DeleteFunc: func(any) { w.Notify() },
			})
		}
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return nil
}

// Run starts the cache, and returns when it has synced and all that is made from it is ready.
func (w *WatchCache) Run(ctx context.Context, ready ...toolscache.InformerSynced) error {
	go func() { w.errors <- w.Start(ctx) }()
	synced := make(chan bool, 1)
	go func() { synced <- w.WaitForCacheSync(ctx) && toolscache.WaitForCacheSync(ctx.Done(), ready...) }()
	select {
	case err := <-w.errors:
		return fmt.Errorf("watch the cluster: %w", err)
	case ok := <-synced:
		if ok {
			return nil
		}
	case <-ctx.Done():
	}
	return fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
}

// Watch reads the status from the cache, and fails once the cache may not see something.
func (w *WatchCache) Watch(status func(context.Context) (render.Status, error)) Watch {
	return Watch{Changed: w.changed, Interval: redrawInterval, Status: func(ctx context.Context) (render.Status, error) {
		select {
		case err := <-w.errors:
			return nil, fmt.Errorf("watch the cluster: %w", err)
		default:
		}
		return status(ctx)
	}}
}
