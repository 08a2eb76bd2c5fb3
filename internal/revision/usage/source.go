package usage

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// enqueueInterval limits how often a name is enqueued while its users change. A rollout of a thousand pods would otherwise
// write a thousand statuses.
const enqueueInterval = 15 * time.Second

// Source is for a controller of revisions or tags. It enqueues every name whose users changed: at once when the
// name came into use or went out of use, otherwise at most once per interval.
func (t *Tracker) Source() source.Source {
	return t.SourceFor(func(_ context.Context, name string) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	})
}

// SourceFor is a Source for a controller of what depends on the users of a name. It must not call the Tracker.
func (t *Tracker) SourceFor(requests func(ctx context.Context, name string) []reconcile.Request) source.Source {
	return &usageSource{t, requests}
}

// usageSource is the source of one controller.
type usageSource struct {
	tracker  *Tracker
	requests func(ctx context.Context, name string) []reconcile.Request
}

var _ source.SyncingSource = &usageSource{}

func (u *usageSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	u.tracker.subscribe(ctx, queue, u.requests)
	return nil
}

func (u *usageSource) WaitForSync(ctx context.Context) error {
	err := u.tracker.waitForSync(ctx)
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil // stopped, which is no failure
	}
	return err
}

func (u *usageSource) String() string { return "uses of revisions and tags" }

func (t *Tracker) subscribe(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
	requests func(context.Context, string) []reconcile.Request,
) {
	s := &subscription{queue: queue, due: map[string]time.Time{}, requests: func(name string) []reconcile.Request { return requests(ctx, name) }}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscriptions[s] = struct{}{}
	context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.subscriptions, s)
	})
}

// subscription limits the rate of requests to one controller.
type subscription struct {
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
	requests func(name string) []reconcile.Request
	// due is when a name was last enqueued or, if in the future, will be.
	due map[string]time.Time
}

func (s *subscription) enqueue(c change, now time.Time) {
	if due := s.due[c.name]; c.turned || now.Sub(due) >= enqueueInterval {
		s.due[c.name] = now
		for _, request := range s.requests(c.name) {
			s.queue.Add(request)
		}
	} else {
		if !due.After(now) {
			due = due.Add(enqueueInterval)
			s.due[c.name] = due
		}
		// Also when it has been asked for before: a queue forgets a later date when it gives the request out for
		// another reason, and this change would be lost. Asking twice costs nothing, the queue keeps the earlier.
		for _, request := range s.requests(c.name) {
			s.queue.AddAfter(request, due.Sub(now))
		}
	}
	if !c.used {
		delete(s.due, c.name)
	}
}
