package generate

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// Delays that gather events: a thousand reconnecting proxies are not a thousand writes.
const (
	tagDebounce    = 100 * time.Millisecond
	statusDebounce = 500 * time.Millisecond
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueueOldAndNew handles the old and the new version of an object.
func enqueueOldAndNew(enqueue func(context.Context, client.Object, queue)) handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			enqueue(ctx, e.ObjectOld, q)
			enqueue(ctx, e.ObjectNew, q)
		},
	}
}

func (r *reconciler) enqueueMesh(_ context.Context, object client.Object, q queue) {
	q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: desired.MeshOf(object)}}, statusDebounce)
}

func (r *reconciler) enqueueMeshOfService(ctx context.Context, service client.Object, q queue) {
	namespace, err := r.namespace(ctx, service.GetNamespace())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "get the namespace of a Service", "service", service.GetName())
		return
	}
	q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: desired.MeshOfWorkload(service, namespace)}}, statusDebounce)
}

// allMeshes returns all Meshes: a change of a namespace, which is rare, may affect any.
func (r *reconciler) allMeshes(ctx context.Context, _ *metav1.PartialObjectMetadata) []reconcile.Request {
	return requests(ctx, r.cache, &kumav1alpha1.MeshList{}, nil)
}

func request(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

// requests lists objects, and returns a request for each that matches; nil matches all.
func requests(ctx context.Context, in client.Reader, list client.ObjectList, matches func(client.Object) bool, options ...client.ListOption) []reconcile.Request {
	if err := in.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list objects to reconcile", "list", fmt.Sprintf("%T", list))
	}
	var all []reconcile.Request
	_ = meta.EachListItem(list, func(item runtime.Object) error { // never fails
		if object := item.(client.Object); matches == nil || matches(object) {
			all = append(all, request(object))
		}
		return nil
	})
	return all
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
var specChanged = predicate.Or[client.Object](
	predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
)

// namespaceChanged drops changes other than labels and annotations.
var namespaceChanged = predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
	UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
		return !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) || !maps.Equal(e.ObjectOld.Annotations, e.ObjectNew.Annotations)
	},
}

// podChanged drops changes that do not affect the stripped pod.
var podChanged = predicate.TypedFuncs[*corev1.Pod]{
	UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool {
		before, now := e.ObjectOld.DeepCopy(), e.ObjectNew.DeepCopy()
		before.ResourceVersion, now.ResourceVersion = "", ""
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

func subjectOf(kind string, object client.Object) eventSubject {
	return eventSubject{kind, client.ObjectKeyFromObject(object), object.GetUID()}
}

// isAbout matches the events about all objects of a kind and name.
func isAbout(kind string, key client.ObjectKey) func(eventSubject) bool {
	return func(s eventSubject) bool { return s.kind == kind && s.ObjectKey == key }
}
