package certs_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha1"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// load asks for an object in v1alpha1, again and again, until it is told to stop.
type load struct {
	// answered is how many requests each of those that ask has had an answer to.
	answered []atomic.Int64
	failed   atomic.Int64
	end      func()
}

// askers is how many requests there are at a time, with a pause between those of one asker that leaves the machine time
// for other things.
const (
	askers = 4
	pause  = 20 * time.Millisecond
)

func askFor(t *testing.T, from client.Reader, key client.ObjectKey) *load {
	t.Helper()
	l := &load{answered: make([]atomic.Int64, askers)}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range l.answered {
		all.Go(func() {
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for ctx.Err() == nil {
				// A request is not cut off when the load ends, or it would fail.
				bounded, cancel := context.WithTimeout(context.Background(), wait.Deadline())
				err := from.Get(bounded, key, &v1alpha1.Materialize{})
				cancel()
				if err != nil && l.failed.Add(1) == 1 {
					t.Errorf("a request failed: %v", err)
				}
				l.answered[i].Add(1)
				select {
				case <-ctx.Done():
				case <-tick.C:
				}
			}
		})
	}
	l.end = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		if n := l.failed.Load(); n > 0 {
			t.Errorf("%d of %d requests failed", n, l.total())
		}
	})
	t.Cleanup(l.end)
	return l
}

func (l *load) total() int64 {
	var total int64
	for i := range l.answered {
		total += l.answered[i].Load()
	}
	return total
}

// all waits until every request that is under way has an answer, and so has one that is made from now on by every asker.
func (l *load) all(t testing.TB) {
	t.Helper()
	enough := make([]int64, len(l.answered))
	for i := range l.answered {
		enough[i] = l.answered[i].Load() + 2
	}
	wait.Until(t, func(context.Context) error {
		for i := range l.answered {
			if got := l.answered[i].Load(); got < enough[i] {
				return fmt.Errorf("of %d answers, there are %d", enough[i], got)
			}
		}
		return nil
	})
	if l.failed.Load() > 0 {
		t.FailNow()
	}
}
