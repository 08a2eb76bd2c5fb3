package rollout_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/environmentd"
)

// watcher looks at what serves from when it is begun: the public Service and the StatefulSet that it leads to must not be
// touched until the next generation is the leader.
type watcher struct {
	e          *environment
	active     int64
	mu         sync.Mutex
	wrong      []string
	seen       int
	generation int64
	ended      bool
}

func (e *environment) watch(t testing.TB) *watcher {
	t.Helper()
	m := e.now(t)
	w := &watcher{e: e, active: m.Status.ActiveGeneration, generation: e.set(t, m.Status.ActiveGeneration).Generation}
	// The test's own context ends before its cleanups.
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	t.Cleanup(func() { cancel(); done.Wait() })
	for _, list := range []client.ObjectList{&corev1.ServiceList{}, &appsv1.StatefulSetList{}} {
		events, err := e.Watch(ctx, list, client.InNamespace(e.namespace), client.HasLabels{v1alpha2.LabelResourceID})
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

func (w *watcher) see(m *v1alpha2.Materialize, event watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	touched := ""
	switch object := event.Object.(type) {
	case *corev1.Service:
		if object.Name != "mz"+m.Status.ResourceID+"-environmentd" {
			return
		}
		if to := object.Spec.Selector[v1alpha2.LabelGeneration]; to != fmt.Sprint(w.active) || event.Type == watch.Deleted {
			touched = fmt.Sprintf("the public Service was %s, and leads to generation %s", event.Type, to)
		}
	case *appsv1.StatefulSet:
		if object.Name == w.e.name(m, w.active) && (event.Type == watch.Deleted || object.Generation != w.generation) {
			touched = fmt.Sprintf("StatefulSet %s was %s", object.Name, event.Type)
		}
	}
	if leads := w.e.daemon(w.active + 1).Status(); touched != "" && leads != environmentd.IsLeader {
		w.wrong = append(w.wrong, fmt.Sprintf("%s while the next generation was %s", touched, leads))
	}
}

// check fails the test if anything was wrong so far.
func (w *watcher) check(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	if w.ended || w.seen == 0 {
		t.Errorf("nobody has watched: %d events", w.seen)
	}
}
