package consumers

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ackWatcher enqueues a mesh when an awaited proxy has acknowledged. Thousands of other proxies may acknowledge all the
// time.
type ackWatcher struct {
	mu      sync.Mutex
	proxies map[string]map[model.ProxyID]bool
	queue   queue
}

func newAckWatcher() *ackWatcher { return &ackWatcher{proxies: map[string]map[model.ProxyID]bool{}} }

// watch sets the awaited proxies of a mesh.
func (a *ackWatcher) watch(mesh string, proxies map[model.ProxyID]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(proxies) == 0 {
		delete(a.proxies, mesh)
		return
	}
	a.proxies[mesh] = proxies
}

// setQueue sets the queue of the controller.
func (a *ackWatcher) setQueue(_ context.Context, q queue) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = q
	return nil
}

// connectionChanged is called with every proxy whose connection has changed.
func (a *ackWatcher) connectionChanged(id model.ProxyID) {
	a.mu.Lock()
	q, waited := a.queue, a.proxies[id.Mesh][id]
	a.mu.Unlock()
	if q != nil && waited {
		q.AddAfter(requestFor(id.Mesh), ackDebounce)
	}
}

func requestFor(mesh string) reconcile.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Name: mesh}}
}

// enqueueMembershipChanges enqueues the mesh of an object that is created, deleted or moved.
func enqueueMembershipChanges() handler.EventHandler {
	look := func(object client.Object, q queue) { q.AddAfter(requestFor(desired.MeshOf(object)), consumerDebounce) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { look(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			consumer := kumav1alpha1.AnnotationConsumer
			if desired.MeshOf(e.ObjectOld) != desired.MeshOf(e.ObjectNew) ||
				e.ObjectOld.GetAnnotations()[consumer] != e.ObjectNew.GetAnnotations()[consumer] {
				look(e.ObjectOld, q)
				look(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { look(e.Object, q) },
	}
}
