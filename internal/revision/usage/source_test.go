package usage

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func TestPace(t *testing.T) {
	cases := map[string]struct {
		events func(*listening)
		want   []string
		plain  []string // what a plain queue gives out, when it keeps a date that a priority queue drops
	}{
		"nothing happens": {events: func(l *listening) {}},
		"into use, and out of it": {
			events: func(l *listening) {
				l.at(0).pod("a", "r1")
				l.at(1).gone("a")
				l.at(1.5).pod("a", "r1")
				l.at(1.75).gone("a")
			},
			want: []string{"r1 at 0s", "r1 at 1s", "r1 at 1.5s", "r1 at 1.75s"},
		},
		"more users": {
			events: func(l *listening) {
				l.at(0).pod("a", "r1")
				l.at(1).pod("b", "r1")
				l.at(2).pod("c", "r1")
			},
			want: []string{"r1 at 0s", "r1 at 15s"},
		},
		"more users after a long time": {
			events: func(l *listening) {
				l.at(0).pod("a", "r1")
				l.at(60).pod("b", "r1")
			},
			want: []string{"r1 at 0s", "r1 at 1m0s"},
		},
		"a rollout of a thousand pods": {
			events: func(l *listening) {
				l.at(0).pod("first", "r1")
				for i := range 1000 {
					l.at(float64(i)/40).pod(fmt.Sprint(i), "r1")
				}
			},
			want: []string{"r1 at 0s", "r1 at 15s", "r1 at 30s"},
		},
		"the last change is told, however close to a round": {
			events: func(l *listening) {
				l.at(0).pod("a", "r1")
				l.at(1).pod("b", "r1")
				l.at(14.999).pod("c", "r1")
				l.at(15.001).pod("d", "r1")
			},
			want: []string{"r1 at 0s", "r1 at 15s", "r1 at 30s"},
		},
		"a change after the queue gave the name out for another reason": {
			events: func(l *listening) {
				l.at(0).pod("a", "r1")
				l.at(1).pod("b", "r1")
				l.at(2).another("r1")
				l.at(3).pod("c", "r1")
			},
			want: []string{"r1 at 0s", "r1 at 2s", "r1 at 15s"},
		},
		"out of use while a change is waiting to be told": {
			events: func(l *listening) {
				l.at(0).pod("a", "r1")
				l.at(1).pod("b", "r1")
				l.at(2).gone("a")
				l.at(2).gone("b")
			},
			want:  []string{"r1 at 0s", "r1 at 2s"},
			plain: []string{"r1 at 0s", "r1 at 2s", "r1 at 15s"},
		},
		"from one name to another": {
			events: func(l *listening) {
				l.at(0).pod("a", "r1")
				l.at(0).pod("b", "r1")
				l.at(20).pod("b", "r2")
			},
			want: []string{"r1 at 0s", "r1 at 15s", "r2 at 20s", "r1 at 30s"},
		},
		"nothing of interest changes": {
			events: func(l *listening) {
				l.at(0).pod("a", "r1")
				l.at(10).pod("a", "r1")
				l.at(20).pod("b", "")
				l.at(30).gone("b")
				l.at(40).gone("never there")
			},
			want: []string{"r1 at 0s"},
		},
	}
	queues := map[string]func() workqueue.TypedRateLimitingInterface[reconcile.Request]{
		"priority queue": func() workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return priorityqueue.New[reconcile.Request]("test")
		},
		"plain queue": func() workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		},
	}
	for name, c := range cases {
		for kind, queue := range queues {
			t.Run(name+" on a "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := listen(t, newTracker(), queue())
					c.events(l)
					time.Sleep(time.Minute)
					want := c.want
					if kind == "plain queue" && c.plain != nil {
						want = c.plain
					}
					if diff := cmp.Diff(want, l.heard()); diff != "" {
						t.Error(diff)
					}
				})
			})
		}
	}
}

func TestSeveralListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := newTracker()
		queue := func() workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return priorityqueue.New[reconcile.Request]("test")
		}
		first := listen(t, tracker, queue())
		first.at(0).pod("a", "r1")
		first.at(1).pod("b", "r1")

		// What the first has been told does not delay the second.
		second := listen(t, tracker, queue())
		first.at(2).pod("c", "r1")
		first.stop()
		synctest.Wait()
		first.at(20).pod("d", "r1")
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"r1 at 0s", "r1 at 15s"}, first.heard()); diff != "" {
			t.Errorf("first: %s", diff)
		}
		if diff := cmp.Diff([]string{"r1 at 1s", "r1 at 19s"}, second.heard()); diff != "" {
			t.Errorf("second, which came a second later: %s", diff)
		}
		if n := len(tracker.subscriptions); n != 1 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

func TestWaitForSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, tags := make(done), make(done)
		tracker := newTracker()
		tracker.kinds = []watchedKind{{kindPod, pods}, {"IstioRevisionTag", tags}}
		syncing := tracker.Source().(source.SyncingSource)
		short := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}

		err := syncing.WaitForSync(short())
		want := "track usage of revisions and tags: not synced yet: Pod, IstioRevisionTag: context deadline exceeded"
		if err == nil || err.Error() != want {
			t.Errorf("waited in vain: %v", err)
		}
		close(pods)
		want = "track usage of revisions and tags: not synced yet: IstioRevisionTag: context deadline exceeded"
		if err := syncing.WaitForSync(short()); err == nil || err.Error() != want {
			t.Errorf("waited in vain: %v", err)
		}
		if tracker.HasSynced() {
			t.Error("it has synced without tags")
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := syncing.WaitForSync(stopped); err != nil {
			t.Errorf("told to stop: %v", err)
		}
		close(tags)
		if err := syncing.WaitForSync(short()); err != nil || !tracker.HasSynced() {
			t.Errorf("all is there, and it has not synced: %v", err)
		}
	})
}

type done chan struct{}

func (d done) Name() string          { return "test" }
func (d done) Done() <-chan struct{} { return d }

// listening is a controller that notes when it is told of a name.
type listening struct {
	pods  toolscache.ResourceEventHandler
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	start time.Time
	stop  func()

	mu    sync.Mutex
	notes []string
}

func listen(t *testing.T, tracker *Tracker, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) *listening {
	ctx, stop := context.WithCancel(t.Context())
	l := &listening{pods: tracker.handlers()[kindPod], queue: queue, start: time.Now(), stop: stop}
	if err := tracker.Source().Start(ctx, queue); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			request, shutdown := queue.Get()
			if shutdown {
				return
			}
			l.mu.Lock()
			l.notes = append(l.notes, fmt.Sprintf("%s at %s", request.Name, time.Since(l.start)))
			l.mu.Unlock()
			queue.Done(request)
		}
	}()
	t.Cleanup(func() { stop(); queue.ShutDown() })
	return l
}

// at lets time pass until so many seconds after the start.
func (l *listening) at(seconds float64) *listening {
	time.Sleep(time.Until(l.start.Add(time.Duration(seconds * float64(time.Second)))))
	synctest.Wait()
	return l
}

// pod is injected by a revision, or by none.
func (l *listening) pod(name, revision string) {
	object := makePod("shop", name, "", revision)
	l.pods.OnUpdate(object, object)
}

func (l *listening) gone(name string) { l.pods.OnDelete(makePod("shop", name, "", "")) }

func (l *listening) another(name string) {
	l.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
}

func (l *listening) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.notes
}
