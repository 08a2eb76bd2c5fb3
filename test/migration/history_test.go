package migration_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// history is every version of some objects of one kind since it was begun, in the order in which they were written.
type history[T client.Object] struct {
	mu     sync.Mutex
	events []happened[T]
	ended  bool
}

type happened[T client.Object] struct {
	Type   watch.EventType
	Object T
}

// follow begins a history.
func follow[T client.Object](t testing.TB, w *world, list client.ObjectList, which ...client.ListOption) *history[T] {
	t.Helper()
	// The test's own context ends before its cleanups.
	ctx, cancel := context.WithCancel(context.Background())
	watcher, err := w.Watch(ctx, list, which...)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	h := &history[T]{}
	var done sync.WaitGroup
	done.Go(func() {
		for event := range watcher.ResultChan() {
			if object, ok := event.Object.(T); ok {
				h.mu.Lock()
				h.events = append(h.events, happened[T]{event.Type, object})
				h.mu.Unlock()
			}
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ended = true
	})
	t.Cleanup(func() {
		watcher.Stop()
		cancel()
		done.Wait()
	})
	return h
}

// sofar is what has happened. A history that has gaps proves nothing.
func (h *history[T]) sofar(t testing.TB) []happened[T] {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		t.Fatal("the API server has ended the watch")
	}
	return h.events[:len(h.events):len(h.events)]
}

// order is the place of a version among all that was ever written to the cluster.
func order(t testing.TB, object client.Object) uint64 {
	t.Helper()
	order, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return order
}
