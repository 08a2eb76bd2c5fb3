package operator

import (
	"context"
	"errors"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
)

// started is a manager of which only the start matters.
type started struct {
	ctrl.Manager
	start func(context.Context) error
}

func (m started) Start(ctx context.Context) error { return m.start(ctx) }

func TestAManagerThatIsStopped(t *testing.T) {
	goodbye := errors.New("goodbye")
	tests := map[string]struct {
		before, after  bool // whether the caches synced before the stop, or while the manager is being left
		reported, left bool
		want           error
	}{
		"with its caches it is told":            {before: true, reported: true, want: goodbye},
		"without them it is left":               {left: true},
		"left as they sync, it is told as well": {after: true, reported: true, left: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			runner, ready := newManagerRunner(ctx), &readiness{}
			ready.synced.Store(tc.before)
			mgr := started{start: func(reported context.Context) error {
				stop()
				<-reported.Done()
				return goodbye
			}}
			if err := start(ctx, mgr, runner, ready, nil); !errors.Is(err, tc.want) {
				t.Errorf("it ended with %v, want %v", err, tc.want)
			}
			if tc.after {
				runner.cachesSynced(ctx)
			}
			if reported, left := runner.ctx.Err() != nil, runner.baseCtx.Err() != nil; reported != tc.reported || left != tc.left {
				t.Errorf("told: %t, left: %t; want %t, %t", reported, left, tc.reported, tc.left)
			}
			runner.stop()
		})
	}
}
