package certs_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha1"
)

// load asks for an object in v1alpha1, fifty times a second, until it is told to stop.
type load struct {
	asked, failed atomic.Int64
	end           func()
}

func askFor(t *testing.T, from client.Reader, key client.ObjectKey) *load {
	t.Helper()
	l := &load{}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			all.Go(func() {
				l.asked.Add(1)
				bounded, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				if err := from.Get(bounded, key, &v1alpha1.Materialize{}); err != nil && l.failed.Add(1) == 1 {
					t.Errorf("a request failed: %v", err)
				}
			})
		}
	})
	l.end = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		if n := l.failed.Load(); n > 0 {
			t.Errorf("%d of %d requests failed", n, l.asked.Load())
		}
	})
	t.Cleanup(l.end)
	return l
}
