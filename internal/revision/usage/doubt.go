package usage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// patience is how long the API server may refuse to show something: one that has just been started refuses for a
	// moment what is allowed.
	patience = 5 * time.Second
	// oblivion is how long after the last refusal it is over, if nothing is heard before. A cache tries again every minute
	// at least.
	oblivion = 90 * time.Second
)

// Refusals are what the API server does not show any more. What a cache holds of it is out of date, and it does not say
// so itself. That nobody answers at all is another matter: then nobody can do any harm either.
type Refusals struct {
	mu    sync.Mutex
	of    map[string]streak
	tell  []func()
	clock func() time.Time
}

// telling are the resources that tell who uses what, besides tags.
var telling = []string{resourceOf(kindNamespace), resourceOf(kindPod)}

func resourceOf(kind string) string { return strings.ToLower(kind) + "s" }

// streak is when the refusals of a resource began, and when there was the last one.
type streak struct{ first, last time.Time }

func (s streak) lasts(now time.Time) bool {
	return s.last.Sub(s.first) >= patience && now.Sub(s.last) < oblivion
}

func (s streak) and(now time.Time) streak {
	if now.Sub(s.last) >= oblivion {
		s.first = now
	}
	s.last = now
	return s
}

// NewRefusals knows of none.
func NewRefusals() *Refusals {
	return &Refusals{of: map[string]streak{}, clock: time.Now}
}

// WatchFailed is for caches to call.
func (r *Refusals) WatchFailed(ctx context.Context, reflector *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	r.note(err)
}

func (r *Refusals) note(err error) {
	var answer apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &answer) || answer.Status().Details == nil {
		return
	}
	resource, now := answer.Status().Details.Kind, r.clock()
	if !slices.Contains(telling, resource) {
		return
	}
	r.mu.Lock()
	before := r.of[resource]
	after := before.and(now)
	r.of[resource] = after
	listeners := r.tell
	r.mu.Unlock()
	if after.lasts(now) && !before.lasts(now) {
		for _, tell := range listeners {
			tell()
		}
	}
}

// over is told by an event: who hears of a kind is not refused.
func (r *Refusals) over(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, resourceOf(kind))
}

// Lasting are the resources that are not shown any more.
func (r *Refusals) Lasting() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lasting []string
	for resource, streak := range r.of {
		if streak.lasts(r.clock()) {
			lasting = append(lasting, resource)
		}
	}
	slices.Sort(lasting)
	return lasting
}

// Mind lets the Tracker answer no more than it can know.
func (t *Tracker) Mind(refusals *Refusals) { t.refusals = refusals }

// Doubts is for a controller of revisions or tags. It asks for a reconcile of everyone when the Tracker cannot know any
// more who uses what.
func (t *Tracker) Doubts(everyone func(context.Context) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if t.refusals == nil {
			return nil
		}
		t.refusals.mu.Lock()
		defer t.refusals.mu.Unlock()
		t.refusals.tell = append(t.refusals.tell, func() {
			for _, request := range everyone(ctx) {
				queue.Add(request)
			}
		})
		return nil
	})
}
