package operator

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// lifetime is how a manager ends. Told to stop while its caches cannot sync, because a permission is missing, it would
// wait for them for ever, and keep a processor busy with that. So it is told only when they have synced. Otherwise it is
// left behind, and its caches end: it holds no lease, has started nothing, and never will.
type lifetime struct {
	told, base  context.Context
	tell, leave context.CancelFunc
}

func newLifetime(ctx context.Context) lifetime {
	var l lifetime
	l.told, l.tell = context.WithCancel(context.WithoutCancel(ctx))
	l.base, l.leave = context.WithCancel(context.Background())
	return l
}

// goesOn is called when the caches have synced, which can be while the manager is being left.
func (l lifetime) goesOn(ctx context.Context) {
	if ctx.Err() != nil {
		l.tell()
	}
}

// start runs the manager until the context ends.
func start(ctx context.Context, mgr ctrl.Manager, life lifetime, ready *readiness, felt *pulse) error {
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(life.told) }()
	select {
	case err := <-ended:
		if err == nil {
			return nil
		}
		// The manager only says that it does not lead any more.
		if lost := felt.lost(time.Now()); lost != nil {
			return lost
		}
		return fmt.Errorf("run the passages: %w", err)
	case <-ctx.Done():
	}
	if !ready.synced.Load() {
		life.leave()
		return nil
	}
	life.tell()
	return <-ended
}
