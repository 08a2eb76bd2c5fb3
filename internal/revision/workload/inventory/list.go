package inventory

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/revision/usage"
)

// List reads the inventory, and the usage of revisions, from an API server, page by page. The reader must not be a cache,
// which has no pages.
func List(ctx context.Context, reader client.Reader) (*Tracker, *usage.Tracker, error) {
	t := New(func(Change) {})
	users, err := usage.List(ctx, reader, t)
	return t, users, err
}

// CountPods counts the pods of a workload. The reader must not be a cache.
func CountPods(ctx context.Context, reader client.Reader, owner Owner) (Pods, error) {
	pods, err := usage.PodsIn(ctx, reader, owner.Namespace)
	if err != nil {
		return nil, err
	}
	t := New(func(Change) {})
	for i := range pods {
		t.ObservePod(&pods[i])
	}
	return t.podCounts[owner], nil
}

// ObserveNamespace stores a namespace.
func (t *Tracker) ObserveNamespace(o metav1.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.observeNamespace(o)
}

// ObserveWorkload stores a workload that can be moved, or a CronJob.
func (t *Tracker) ObserveWorkload(o client.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cronJob, ok := o.(*batchv1.CronJob); ok {
		t.observeCronJob(cronJob)
	} else if w := From(o); w != nil {
		t.observeWorkload(w)
	}
}

// ObservePod stores a pod.
func (t *Tracker) ObservePod(o metav1.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.observePod(o)
}
