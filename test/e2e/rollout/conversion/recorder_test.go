package conversion_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
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
	"github.com/fairlead/fairlead/test/harness/wait"
)

// recorder records every change of the objects that serve, from before Fairlead is installed.
type recorder struct {
	mu sync.Mutex
	// seen is by namespace.
	seen map[string][]event
	// known is what an object was last seen to be.
	known map[types.UID]string
}

// event has a place among the others: one cluster counts all its changes, whatever they are of.
type event struct {
	revision uint64
	text     string
}

func startRecorder(ctx context.Context, c client.WithWatch) (*recorder, error) {
	w := &recorder{seen: map[string][]event{}, known: map[types.UID]string{}}
	for _, list := range []client.ObjectList{&appsv1.StatefulSetList{}, &corev1.PodList{}, &corev1.ServiceList{}} {
		if err := c.List(ctx, list); err != nil {
			return nil, err
		}
		err := meta.EachListItem(list, func(object runtime.Object) error {
			o := object.(client.Object)
			w.known[o.GetUID()], _ = lookOf(o)
			return nil
		})
		if err != nil {
			return nil, err
		}
		// It goes on where it was when the API server ends a watch.
		events, err := watchtools.NewRetryWatcherWithContext(context.Background(), list.GetResourceVersion(), &toolscache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return c.Watch(ctx, list, &client.ListOptions{Raw: &options})
			},
		})
		if err != nil {
			return nil, err
		}
		go func() {
			for event := range events.ResultChan() {
				w.see(event)
			}
		}()
	}
	return w, nil
}

// lookOf is what matters of an object, and how that is told.
func lookOf(object client.Object) (look, reported string) {
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		if generation, of := after(o.Name, "-environmentd-"); of {
			return strconv.FormatInt(o.Generation, 10), "generation " + generation + " is made"
		}
	case *corev1.Pod:
		if generation, of := after(o.Name, "-environmentd-"); of {
			return "there", "a pod of generation " + strings.TrimSuffix(generation, "-0") + " starts"
		}
	case *corev1.Service:
		if _, of := after(o.Name+".", "-environmentd."); of {
			generation := cmp.Or(o.Spec.Selector[v1alpha2.LabelGeneration], o.Spec.Selector[inheritedGeneration])
			return generation, "users are led to generation " + generation
		}
	}
	return "", ""
}

func after(name, part string) (string, bool) {
	_, rest, found := strings.Cut(name, part)
	return rest, found
}

func (w *recorder) see(e watch.Event) {
	object, ok := e.Object.(client.Object)
	if !ok {
		return
	}
	look, reported := lookOf(object)
	if reported == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before, known := w.known[object.GetUID()]
	w.known[object.GetUID()] = look
	set, isSet := object.(*appsv1.StatefulSet)
	switch {
	case e.Type == watch.Deleted && isSet:
		reported = strings.TrimSuffix(reported, "made") + "gone"
	case e.Type == watch.Deleted, known && before == look, isSet && !set.DeletionTimestamp.IsZero():
		return
	case isSet && known:
		reported = strings.TrimSuffix(reported, "made") + "changed"
	}
	revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	w.seen[object.GetNamespace()] = append(w.seen[object.GetNamespace()], event{revision, reported})
}

// history of an environment since Fairlead came, or since it was made.
func (e *environment) history() []string {
	e.recorder.mu.Lock()
	defer e.recorder.mu.Unlock()
	all := slices.Clone(e.recorder.seen[e.namespace])
	slices.SortFunc(all, func(a, b event) int { return cmp.Compare(a.revision, b.revision) })
	reported := []string{}
	for _, one := range all {
		reported = append(reported, one.text)
	}
	return reported
}

// tells waits until this is the whole history.
func (e *environment) tells(t testing.TB, want ...string) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		if diff := gocmp.Diff(append([]string{}, want...), e.history()); diff != "" {
			return fmt.Errorf("another story: %s", diff)
		}
		return nil
	})
}

// starting is how a generation comes to be, and taking over how it replaces another one.
func starting(generation int) []string {
	return []string{fmt.Sprintf("generation %d is made", generation), fmt.Sprintf("a pod of generation %d starts", generation)}
}

func takingOver(generation int) []string {
	return []string{fmt.Sprintf("users are led to generation %d", generation), fmt.Sprintf("generation %d is gone", generation-1)}
}
