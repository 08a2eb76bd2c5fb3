package scale_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// following has all Deployments of the mesh as they were last heard of.
type following struct {
	mu      sync.Mutex
	known   map[types.NamespacedName]*appsv1.Deployment
	changed chan struct{}
	stop    func()
}

func follow(b *testing.B, kube kubernetes.Interface) *following {
	b.Helper()
	// Not that of the control planes.
	own := metav1.ListOptions{LabelSelector: workloadLabel}
	list, err := kube.AppsV1().Deployments("").List(b.Context(), own)
	if err != nil {
		b.Fatal(err)
	}
	own.ResourceVersion = list.ResourceVersion
	events, err := kube.AppsV1().Deployments("").Watch(b.Context(), own)
	if err != nil {
		b.Fatal(err)
	}
	f := &following{
		known: map[types.NamespacedName]*appsv1.Deployment{}, changed: make(chan struct{}, 1), stop: events.Stop,
	}
	for i := range list.Items {
		f.enter(&list.Items[i])
	}
	go func() {
		for event := range events.ResultChan() {
			if d, ok := event.Object.(*appsv1.Deployment); ok {
				f.enter(d)
			}
		}
	}()
	return f
}

func (f *following) enter(d *appsv1.Deployment) {
	f.mu.Lock()
	f.known[types.NamespacedName{Namespace: d.Namespace, Name: d.Name}] = d
	f.mu.Unlock()
	f.wake()
}

func (f *following) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *following) get(name types.NamespacedName) *appsv1.Deployment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[name]
}

// names are in the order in which the operator takes them.
func (f *following) names() []types.NamespacedName {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Keys(f.known), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// ready waits until nothing but the pods of these generations is left of some Deployments, all of them are ready, and they
// are what they should be.
func (f *following) ready(ctx context.Context, within time.Duration, generations map[types.NamespacedName]int64, is func(types.NamespacedName) bool) error {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		maps.DeleteFunc(generations, func(name types.NamespacedName, generation int64) bool {
			return rolledOut(f.get(name), generation) && is(name)
		})
		if len(generations) == 0 {
			return nil
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return fmt.Errorf("%d Deployments are not ready within %s", len(generations), within)
		}
	}
}

// rolledOut is the operator's rule for Deployments that were moved.
func rolledOut(d *appsv1.Deployment, generation int64) bool {
	desired := ptr.Deref(d.Spec.Replicas, 1)
	status := d.Status
	return status.ObservedGeneration >= generation && status.Replicas == desired && status.UpdatedReplicas == desired &&
		status.ReadyReplicas == desired && status.AvailableReplicas == desired
}
