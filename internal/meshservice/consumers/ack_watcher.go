package consumers

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ackWatcher enqueues a mesh when an awaited proxy has acknowledged. Thousands of other proxies may acknowledge all the
// time.
type ackWatcher struct {
	// proxies are the awaited proxies, a map[model.ProxyID]bool by mesh.
	proxies sync.Map
}

// watch sets the awaited proxies of a mesh.
func (a *ackWatcher) watch(mesh string, proxies map[model.ProxyID]bool) {
	if len(proxies) == 0 {
		a.proxies.Delete(mesh)
		return
	}
	a.proxies.Store(mesh, proxies)
}

// enqueue enqueues the mesh of each awaited proxy whose connection changes.
func (a *ackWatcher) enqueue(changes func(func(model.ProxyID)), q queue) {
	changes(func(id model.ProxyID) {
		proxies, _ := a.proxies.Load(id.Mesh)
		if awaited, _ := proxies.(map[model.ProxyID]bool); awaited[id] {
			q.AddAfter(requestFor(id.Mesh), ackDebounce)
		}
	})
}

func requestFor(mesh string) reconcile.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Name: mesh}}
}

func meshOf(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{requestFor(desired.MeshOf(object))}
}

// consumerChanged drops updates of a Dataplane that change neither its mesh nor its consumer.
var consumerChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	consumer := kumav1alpha1.AnnotationConsumer
	return desired.MeshOf(e.ObjectOld) != desired.MeshOf(e.ObjectNew) ||
		e.ObjectOld.GetAnnotations()[consumer] != e.ObjectNew.GetAnnotations()[consumer]
}}
