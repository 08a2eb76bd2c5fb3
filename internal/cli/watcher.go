package cli

import (
	"context"
	"time"
)

// watcher tells about a resource whenever something about it may have changed.
type watcher struct {
	report  func(context.Context) (account, error)
	changed <-chan struct{}
}

// pollInterval is how often to look at what tells no changes by itself.
const pollInterval = 2 * time.Second

// newWatcher follows a resource until the context ends.
func (c *cluster) newWatcher(ctx context.Context, r resource) (watcher, error) {
	switch r.kind() {
	case istios:
		return c.watchIstio(ctx, r)
	case materializes:
		return c.watchMaterialize(ctx, r)
	case policies, clusterPolicies:
		return c.watchPolicy(ctx, r)
	case meshes:
		return c.watchMesh(ctx, r)
	}
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
	return watcher{func(ctx context.Context) (account, error) { return c.report(ctx, r, query{}) }, changed}, nil
}
