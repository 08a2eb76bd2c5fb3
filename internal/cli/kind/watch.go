package kind

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/render"
)

// Watch reads a status whenever something about a resource may have changed.
type Watch struct {
	Status  func(context.Context) (render.Status, error)
	Changed <-chan struct{}
}

// NewWatch watches a resource until the context ends.
func NewWatch(ctx context.Context, k Kind, c *connect.Cluster, r connect.Resource) (Watch, error) {
	if w, ok := k.(Watcher); ok {
		return w.Watch(ctx, c, r)
	}
	return Watch{func(ctx context.Context) (render.Status, error) { return k.Status(ctx, c, r) }, poll(ctx)}, nil
}

const pollInterval = 2 * time.Second

func poll(ctx context.Context) <-chan struct{} {
	changed := make(chan struct{}, 1)
	go func() {
		for tick := time.NewTicker(pollInterval); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				notify(changed)
			}
		}
	}()
	return changed
}
