package operator

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// managerRunner stops a manager. A manager that is stopped before its caches have synced, because a permission is missing,
// would wait for them for ever in a busy loop. So it is stopped only after the sync. Otherwise it is abandoned, and its caches
// are stopped: it holds no lease and has started no controller.
type managerRunner struct {
	ctx, baseCtx  context.Context
	stop, abandon context.CancelFunc
}

func newManagerRunner(ctx context.Context) managerRunner {
	var l managerRunner
	l.ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	// With the values of the context, such as the tracer, and not its end.
	l.baseCtx, l.abandon = context.WithCancel(context.WithoutCancel(ctx))
	return l
}

// cachesSynced is called when the caches have synced, which can be after the context has ended.
func (l managerRunner) cachesSynced(ctx context.Context) {
	if ctx.Err() != nil {
		l.stop()
	}
}

// start runs the manager until the context ends.
func start(ctx context.Context, mgr ctrl.Manager, runner managerRunner, ready *readiness, monitor *leaseMonitor) error {
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(runner.ctx) }()
	select {
	case err := <-ended:
		if err == nil {
			return nil
		}
		// The error of the manager does not say why the lease was lost.
		if lost := monitor.lostError(time.Now()); lost != nil {
			return lost
		}
		return fmt.Errorf("run the passages: %w", err)
	case <-ctx.Done():
	}
	if !ready.synced.Load() {
		runner.abandon()
		return nil
	}
	runner.stop()
	return <-ended
}
