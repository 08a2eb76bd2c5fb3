package cli

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/internal/cli/connect"
)

// watcher tells about a resource whenever something about it may have changed.
type watcher struct {
	report  func(context.Context) (account, error)
	changed <-chan struct{}
}

// pollInterval is how often to look at what tells no changes by itself.
const pollInterval = 2 * time.Second

// newWatcher follows a resource until the context ends.
func newWatcher(ctx context.Context, c *connect.Cluster, r connect.Resource) (watcher, error) {
	switch r.Kind() {
	case istios:
		return watchIstio(ctx, c, r)
	case materializes:
		return watchMaterialize(ctx, c, r)
	case policies, clusterPolicies:
		return watchPolicy(ctx, c, r)
	case meshes:
		return watchMesh(ctx, c, r)
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
	return watcher{func(ctx context.Context) (account, error) { return reportResource(ctx, c, r, query{}) }, changed}, nil
}
