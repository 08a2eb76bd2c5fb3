package rollout_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// watcher looks at what serves from when it is begun: the public Service and the StatefulSet that it leads to must not be
// touched until the next generation is the leader. It looks once more just before that, for what it watches reaches it later.
type watcher struct {
	e          *environment
	active     int64
	generation int64

	mu    sync.Mutex
	wrong []string
	ended bool
	// seen is the resource version at which each object was last seen.
	seen map[types.UID]uint64
}

// watchedLists are lists of all that a watcher looks at.
func watchedLists() []client.ObjectList {
	return []client.ObjectList{&corev1.ServiceList{}, &appsv1.StatefulSetList{}}
}

func (e *environment) watch(t testing.TB) *watcher {
	t.Helper()
	m := e.now(t)
	w := &watcher{e: e, active: m.Status.ActiveGeneration, generation: e.set(t, m.Status.ActiveGeneration).Generation, seen: map[types.UID]uint64{}}
	// The test's own context ends before its cleanups.
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	t.Cleanup(func() { cancel(); done.Wait() })
	next := e.daemon(w.active + 1)
	t.Cleanup(func() { next.BeforeLeading(nil) })
	next.BeforeLeading(func() { w.look(ctx, m) })
	which := []client.ListOption{client.InNamespace(e.namespace), client.HasLabels{v1alpha2.LabelResourceID}}
	for _, list := range watchedLists() {
		if err := e.List(ctx, list, which...); err != nil {
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(object runtime.Object) error {
			w.see(m, watch.Event{Type: watch.Added, Object: object})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		// It goes on where it was when the API server ends a watch.
		events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &toolscache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return e.Watch(ctx, list, append(which[:len(which):len(which)], &client.ListOptions{Raw: &options})...)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		done.Go(func() {
			defer events.Stop()
			for event := range events.ResultChan() {
				w.see(m, event)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ended = ctx.Err() == nil
		})
	}
	return w
}

// look is called while the next generation is about to lead.
func (w *watcher) look(ctx context.Context, m *v1alpha2.Materialize) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, object := range []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.e.namespace, Name: publicService(m)}},
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.e.namespace, Name: w.e.name(m, w.active)}},
	} {
		if err := w.e.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			w.wrong = append(w.wrong, fmt.Sprintf("just before the next generation leads: %v", err))
		} else if touched := w.touched(m, watch.Event{Type: watch.Modified, Object: object}); touched != "" {
			w.wrong = append(w.wrong, touched+" before the next generation leads")
		}
	}
}

func publicService(m *v1alpha2.Materialize) string {
	return "mz" + m.Status.ResourceID + "-environmentd"
}

func (w *watcher) touched(m *v1alpha2.Materialize, event watch.Event) string {
	switch object := event.Object.(type) {
	case *corev1.Service:
		if to := object.Spec.Selector[v1alpha2.LabelGeneration]; object.Name == publicService(m) &&
			(to != fmt.Sprint(w.active) || event.Type == watch.Deleted) {
			return fmt.Sprintf("the public Service was %s, and leads to generation %s", event.Type, to)
		}
	case *appsv1.StatefulSet:
		if object.Name == w.e.name(m, w.active) && (event.Type == watch.Deleted || object.Generation != w.generation) {
			return fmt.Sprintf("StatefulSet %s was %s", object.Name, event.Type)
		}
	}
	return ""
}

func (w *watcher) see(m *v1alpha2.Materialize, event watch.Event) {
	object, isObject := event.Object.(client.Object)
	if !isObject {
		return
	}
	// Asked before the lock is taken, which an environmentd that is about to lead waits for.
	touched, leads := w.touched(m, event), w.e.daemon(w.active+1).Status()
	w.mu.Lock()
	defer w.mu.Unlock()
	if touched != "" && leads != environmentd.IsLeader {
		w.wrong = append(w.wrong, fmt.Sprintf("%s while the next generation was %s", touched, leads))
	}
	if w.seen[object.GetUID()] = revision(object); event.Type == watch.Deleted {
		delete(w.seen, object.GetUID())
	}
}

func revision(object client.Object) uint64 {
	revision, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64) // the API server has no other
	return revision
}

// check fails the test if anything was wrong so far.
func (w *watcher) check(t testing.TB) {
	t.Helper()
	wait.Until(t, w.caughtUp)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	if w.ended {
		t.Error("the watch has ended")
	}
}

// caughtUp tells whether the watcher has seen all objects as they are.
func (w *watcher) caughtUp(ctx context.Context) error {
	there := map[types.UID]uint64{}
	for _, list := range watchedLists() {
		if err := w.e.List(ctx, list, client.InNamespace(w.e.namespace), client.HasLabels{v1alpha2.LabelResourceID}); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(object runtime.Object) error {
			there[object.(client.Object).GetUID()] = revision(object.(client.Object))
			return nil
		})
		if err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return nil
	}
	for uid, revision := range there {
		if w.seen[uid] < revision {
			return fmt.Errorf("the watcher has yet to see object %s at resource version %d", uid, revision)
		}
	}
	for uid := range w.seen {
		if _, found := there[uid]; !found {
			return fmt.Errorf("the watcher has yet to see that object %s is gone", uid)
		}
	}
	return nil
}
