package operator

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// managerRunner is how a manager ends. Told to stop while its caches cannot sync, because a permission is missing, it would
// wait for them for ever, and keep a processor busy with that. So it is told only when they have synced. Otherwise it is
// left behind, and its caches end: it holds no lease, has started nothing, and never will.
type managerRunner struct {
	ctx, baseCtx  context.Context
	stop, abandon context.CancelFunc
}

func newManagerRunner(ctx context.Context) managerRunner {
	var l managerRunner
	l.ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.baseCtx, l.abandon = context.WithCancel(context.Background())
	return l
}

// cachesSynced is called when the caches have synced, which can be while the manager is being left.
func (l managerRunner) cachesSynced(ctx context.Context) {
	if ctx.Err() != nil {
		l.stop()
	}
}

// start runs the manager until the context ends.
func start(ctx context.Context, mgr ctrl.Manager, life managerRunner, ready *readiness, felt *leaseMonitor) error {
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(life.ctx) }()
	select {
	case err := <-ended:
		if err == nil {
			return nil
		}
		// The manager only says that it does not lead any more.
		if lost := felt.lostError(time.Now()); lost != nil {
			return lost
		}
		return fmt.Errorf("run the passages: %w", err)
	case <-ctx.Done():
	}
	if !ready.synced.Load() {
		life.abandon()
		return nil
	}
	life.stop()
	return <-ended
}
