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
	// forbiddenAfter is how long refusals must last to count: an API server that has just started refuses for a moment
	// what is allowed.
	forbiddenAfter = 5 * time.Second
	// forgetAfter is how long after the last refusal a resource counts as readable again, if there is no event before. A
	// cache retries at least every minute.
	forgetAfter = 90 * time.Second
)

// WatchErrors are the resources that the API server refuses to list or watch. Caches of them are out of date, and do not
// report it themselves. An unreachable API server does not count: then nothing can be deleted either.
type WatchErrors struct {
	mu        sync.Mutex
	streaks   map[string]streak
	listeners []func()
	now       func() time.Time
}

// watchedResources are the resources that use revisions, besides tags.
var watchedResources = resourcesOf(templateKinds)

func resourcesOf(kinds []templateKind) []string {
	resources := []string{resourceOf(kindNamespace), resourceOf(kindPod)}
	for _, k := range kinds {
		resources = append(resources, resourceOf(k.kind))
	}
	return resources
}

func resourceOf(kind string) string { return strings.ToLower(kind) + "s" }

// streak is the time of the first and the last refusal of a resource.
type streak struct{ first, last time.Time }

func (s streak) isForbidden(now time.Time) bool {
	return s.last.Sub(s.first) >= forbiddenAfter && now.Sub(s.last) < forgetAfter
}

func (s streak) extend(now time.Time) streak {
	if now.Sub(s.last) >= forgetAfter {
		s.first = now
	}
	s.last = now
	return s
}

// NewWatchErrors starts without errors.
func NewWatchErrors() *WatchErrors {
	return &WatchErrors{streaks: map[string]streak{}, now: time.Now}
}

// HandleWatchError is the DefaultWatchErrorHandler of a cache.
func (r *WatchErrors) HandleWatchError(ctx context.Context, reflector *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	r.record(err)
}

func (r *WatchErrors) record(err error) {
	var answer apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &answer) || answer.Status().Details == nil {
		return
	}
	resource, now := answer.Status().Details.Kind, r.now()
	if !slices.Contains(watchedResources, resource) {
		return
	}
	r.mu.Lock()
	before := r.streaks[resource]
	after := before.extend(now)
	r.streaks[resource] = after
	listeners := r.listeners
	r.mu.Unlock()
	if after.isForbidden(now) && !before.isForbidden(now) {
		for _, notify := range listeners {
			notify()
		}
	}
}

// clear is called for every event of a kind: its resource can be read.
func (r *WatchErrors) clear(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.streaks, resourceOf(kind))
}

// Forbidden are the resources that cannot be read any more.
func (r *WatchErrors) Forbidden() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lasting []string
	for resource, streak := range r.streaks {
		if streak.isForbidden(r.now()) {
			lasting = append(lasting, resource)
		}
	}
	slices.Sort(lasting)
	return lasting
}

// SetWatchErrors lets the Tracker report usage as unknown while a resource cannot be read.
func (t *Tracker) SetWatchErrors(refusals *WatchErrors) { t.watchErrors = refusals }

// WatchErrorSource is for a controller of revisions or tags. It enqueues all of them when usage becomes unknown.
func (t *Tracker) WatchErrorSource(everyone func(context.Context) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if t.watchErrors == nil {
			return nil
		}
		t.watchErrors.mu.Lock()
		defer t.watchErrors.mu.Unlock()
		t.watchErrors.listeners = append(t.watchErrors.listeners, func() {
			for _, request := range everyone(ctx) {
				queue.Add(request)
			}
		})
		return nil
	})
}
