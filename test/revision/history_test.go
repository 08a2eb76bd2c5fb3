package revision_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// history is all that has happened to some objects since it was begun.
type history[T client.Object] struct {
	mu     sync.Mutex
	events []happened[T]
}

// happened is one version of an object, and when the test saw it.
type happened[T client.Object] struct {
	Type   watch.EventType
	Object T
	At     time.Time
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
				h.events = append(h.events, happened[T]{event.Type, object, time.Now()})
				h.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		watcher.Stop()
		cancel()
		done.Wait()
	})
	return h
}

func (h *history[T]) sofar() []happened[T] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events[:len(h.events):len(h.events)]
}

// first waits for the first event of a kind.
func (h *history[T]) first(t testing.TB, what string, is func(happened[T]) bool) happened[T] {
	t.Helper()
	var found happened[T]
	eventually(t, func(context.Context) error {
		for _, event := range h.sofar() {
			if is(event) {
				found = event
				return nil
			}
		}
		return fmt.Errorf("%s has not been seen", what)
	})
	return found
}

// order is the place of a version among all that was ever written to the cluster.
func (h happened[T]) order(t testing.TB) uint64 {
	t.Helper()
	order, err := strconv.ParseUint(h.Object.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return order
}
