package generate

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Delays that gather events: a thousand reconnecting proxies are not a thousand writes.
const (
	tagDebounce    = 100 * time.Millisecond
	statusDebounce = 500 * time.Millisecond
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func meshRequest(mesh string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: mesh}}}
}

func meshOf(_ context.Context, object client.Object) []reconcile.Request {
	return meshRequest(desired.MeshOf(object))
}

func (r *reconciler) meshOfService(ctx context.Context, service client.Object) []reconcile.Request {
	namespace, err := r.namespace(ctx, service.GetNamespace())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "get the namespace of a Service", "service", service.GetName())
		return nil
	}
	return meshRequest(desired.MeshOfWorkload(service, namespace))
}

// allMeshes returns all Meshes: a change of a namespace, which is rare, may affect any.
func (r *reconciler) allMeshes(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requests(ctx, &kumav1alpha1.MeshList{})
}

func request(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

// requests returns a request for each object of a list.
func (r *reconciler) requests(ctx context.Context, list client.ObjectList, options ...client.ListOption) []reconcile.Request {
	return kube.RequestsMatching(ctx, r.cache, list, func(client.Object) bool { return true }, options...)
}

// firstObserved passes the first status of a MeshService, with its VIPs.
var firstObserved = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*kumav1alpha1.MeshService)
		now, same := e.ObjectNew.(*kumav1alpha1.MeshService)
		return ok && same && before.Status.ObservedGeneration == 0 && now.Status.ObservedGeneration != 0
	},
}

// specChanged drops changes of the status.
var specChanged = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, metadataChanged)

// meshChanged passes, beside changes of the spec, that the status has another mode: see generatedMode.
var meshChanged = predicate.Or[client.Object](specChanged, modeObserved)

// modeObserved passes a change of the mode in the status of a Mesh.
var modeObserved = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*kumav1alpha1.Mesh)
		now, same := e.ObjectNew.(*kumav1alpha1.Mesh)
		return ok && same && before.Status.Mode != now.Status.Mode
	},
}

// metadataChanged drops changes other than labels and annotations.
var metadataChanged = predicate.Or[client.Object](predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})

// rulesChanged passes updates of what objects of a namespace may name. Those of a new namespace come later.
var rulesChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !desired.RulesOf(e.ObjectOld).Equal(desired.RulesOf(e.ObjectNew))
	},
}

// podChanged drops changes that do not affect the stripped pod.
var podChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld.DeepCopyObject().(client.Object), e.ObjectNew.DeepCopyObject().(client.Object)
		before.SetResourceVersion("")
		now.SetResourceVersion("")
		return !desired.Equal(before, now)
	},
}

// createdOrDeleted drops updates.
var createdOrDeleted = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	},
}

// eventSubject is the object that an event is about. Another object of the same name is another subject.
type eventSubject struct {
	kind string
	client.ObjectKey
	uid types.UID
}

func subjectOf(object client.Object) eventSubject {
	return eventSubject{model.KindOf(object), client.ObjectKeyFromObject(object), object.GetUID()}
}

// isAbout matches the events about all objects of a kind and name.
func isAbout(kind string, key client.ObjectKey) func(eventSubject) bool {
	return func(s eventSubject) bool { return s.kind == kind && s.ObjectKey == key }
}
