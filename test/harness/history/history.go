// Package history records every version of some objects, for tests about the order of changes and about states that must
// never be.
package history

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// History is every version of some objects of one kind since it was begun, in the order in which they were written.
type History[T client.Object] struct {
	client client.WithWatch
	list   client.ObjectList
	which  []client.ListOption

	mu     sync.Mutex
	events []Event[T]
	ended  error
}

// Event is one version of an object.
type Event[T client.Object] struct {
	Type   watch.EventType
	Object T
}

// Follow begins a history with the objects that are there. It goes on where it was when the API server ends a watch.
func Follow[T client.Object](t testing.TB, c client.WithWatch, list client.ObjectList, which ...client.ListOption) *History[T] {
	t.Helper()
	h := &History[T]{client: c, list: list, which: which}
	there, version := h.now(t)
	for _, object := range there {
		h.events = append(h.events, Event[T]{watch.Added, object})
	}
	// The test's own context ends before its cleanups.
	ctx, stop := context.WithCancel(context.Background())
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, h)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { h.record(watcher.ResultChan()) })
	t.Cleanup(func() {
		stop()
		watcher.Stop()
		done.Wait()
	})
	return h
}

// WatchWithContext is for the watcher that begins again where the last watch has ended.
func (h *History[T]) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	list := h.list.DeepCopyObject().(client.ObjectList)
	return h.client.Watch(ctx, list, append(h.which[:len(h.which):len(h.which)], &client.ListOptions{Raw: &options})...)
}

func (h *History[T]) record(events <-chan watch.Event) {
	for event := range events {
		h.mu.Lock()
		if object, ok := event.Object.(T); ok {
			if event.Type != watch.Bookmark {
				h.events = append(h.events, Event[T]{event.Type, object})
			}
		} else if event.Type == watch.Error {
			h.ended = fmt.Errorf("the history has a gap: %v", event.Object)
		}
		h.mu.Unlock()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.ended = errors.New("the watch has ended")
	}
}

// now are the objects that are there, and the version of their list.
func (h *History[T]) now(t testing.TB) ([]T, string) {
	t.Helper()
	list := h.list.DeepCopyObject().(client.ObjectList)
	wait.Until(t, func(ctx context.Context) error { return h.client.List(ctx, list, h.which...) })
	var objects []T
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(T)
		if !ok {
			return fmt.Errorf("%T has items of type %T", h.list, item)
		}
		objects = append(objects, object)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects, list.GetResourceVersion()
}

// Events are all that happened before the call.
func (h *History[T]) Events(t testing.TB) []Event[T] {
	t.Helper()
	there, version := h.now(t)
	limit := number(t, version)
	wait.Until(t, func(context.Context) error { return h.covers(t, there, limit) })
	return h.seen()
}

// covers tells whether the history has come to where the objects were when they were listed.
func (h *History[T]) covers(t testing.TB, there []T, version uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		t.Fatal(h.ended)
	}
	last := map[types.UID]Event[T]{}
	for _, event := range h.events {
		last[event.Object.GetUID()] = event
	}
	for _, object := range there {
		if known, ok := last[object.GetUID()]; !ok || Order(t, known.Object) < Order(t, object) {
			return fmt.Errorf("the watch has not yet told of %T %s", object, object.GetName())
		}
		delete(last, object.GetUID())
	}
	for _, event := range last {
		if event.Type != watch.Deleted && Order(t, event.Object) <= version {
			return fmt.Errorf("the watch has not yet told that %T %s is gone", event.Object, event.Object.GetName())
		}
	}
	return nil
}

func (h *History[T]) seen() []Event[T] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events[:len(h.events):len(h.events)]
}

// First waits for the first event that is as described.
func (h *History[T]) First(t testing.TB, what string, is func(Event[T]) bool) Event[T] {
	t.Helper()
	var found Event[T]
	wait.Until(t, func(context.Context) error {
		for _, event := range h.seen() {
			if is(event) {
				found = event
				return nil
			}
		}
		return fmt.Errorf("%s has not been seen", what)
	})
	return found
}

// Order is the place of a version among all that was ever written to the cluster.
func Order(t testing.TB, object client.Object) uint64 {
	t.Helper()
	return number(t, object.GetResourceVersion())
}

func number(t testing.TB, resourceVersion string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
