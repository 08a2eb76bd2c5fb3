package work

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// A cluster that does not answer holds up no other: of its Works, a limited number takes a worker, and each of the others gets its
// turn when one is done.
func TestSlowClusterHoldsUpNoOther(t *testing.T) {
	const limit, works = 3, 20
	slow, fast := model.ExecutionNamespace("slow"), model.ExecutionNamespace("fast")
	answer := make(chan struct{})
	var mu sync.Mutex
	done := map[types.NamespacedName]int{}
	queue := make(chan types.NamespacedName, works)
	l := newClusterLimiter(reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
		if r.Namespace == slow {
			<-answer
		}
		mu.Lock()
		defer mu.Unlock()
		done[r.NamespacedName]++
		return reconcile.Result{}, nil
	}), limit, func(key client.ObjectKey) { queue <- key })
	var running sync.WaitGroup
	run := func(key types.NamespacedName) {
		running.Go(func() {
			if _, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
				t.Error(err)
			}
		})
	}
	// As many workers as there are clusters with the limit: with the Works of the slow one come first, one is left for the other.
	workers := make(chan struct{}, limit+1)
	for i := range works {
		workers <- struct{}{}
		running.Go(func() {
			defer func() { <-workers }()
			_, _ = l.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: slow, Name: fmt.Sprint(i)}})
		})
	}
	workers <- struct{}{} // which a slow cluster without a limit would have taken for ever
	key := types.NamespacedName{Namespace: fast, Name: "it"}
	if _, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil || done[key] != 1 {
		t.Errorf("the other cluster: %v, %v", done, err)
	}
	close(answer)
	for range works - limit {
		run(<-queue)
	}
	running.Wait()
	for i := range works {
		if n := done[types.NamespacedName{Namespace: slow, Name: fmt.Sprint(i)}]; n != 1 {
			t.Errorf("Work %d is reconciled %d times", i, n)
		}
	}
	if len(l.clusters) > 0 || len(queue) > 0 {
		t.Errorf("left are %v, and %d in the queue", l.clusters, len(queue))
	}
	if maxWorkers <= model.MaxConcurrent {
		t.Errorf("one cluster can have all of %d workers", maxWorkers)
	}
}
