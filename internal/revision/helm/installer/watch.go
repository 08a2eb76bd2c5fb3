package installer

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

// Watch maps events of installed objects to requests.
type Watch struct {
	// Kind of the owners.
	Kind string
	// ReleaseSuffix is what the names of their releases end in, after their own names.
	ReleaseSuffix string
	// Unowned are the requests for objects without an owner.
	Unowned func(context.Context) []ctrl.Request
	// Namespace are the requests for a namespace that is created or deleted; it may be nil.
	Namespace func(ctx context.Context, name string) []ctrl.Request
}

type (
	metadataOnly = *metav1.PartialObjectMetadata
	requests     = handler.TypedMapFunc[metadataOnly, reconcile.Request]
)

// Watch adds the sources of events to a controller.
func (o *Objects) Watch(b *builder.Builder, w Watch) *builder.Builder {
	add := func(object metadataOnly, whom requests, when predicate.TypedPredicate[metadataOnly]) {
		b.WatchesRawSource(source.Kind(o.cache, object, handler.TypedEnqueueRequestsFromMapFunc(whom), when))
	}
	for _, kind := range o.kinds {
		whom := w.owner
		if kind == endpoints || kind == endpointSlices {
			// Kubernetes copies the labels of a Service to its own EndpointSlices: those without an owner are not ours.
			whom = Watch{Kind: w.Kind}.owner
		}
		add(metadata(kind), whom, appliedFieldsChanged)
	}
	add(metadata(records), w.recordRequests, deployedRecords)
	if w.Namespace != nil {
		whom := func(ctx context.Context, namespace metadataOnly) []ctrl.Request {
			return w.Namespace(ctx, namespace.Name)
		}
		add(metadata(corev1.SchemeGroupVersion.WithKind("Namespace")), whom, existenceChanged)
	}
	b.WatchesRawSource(source.Kind(o.cache, &appsv1.Deployment{}, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, d *appsv1.Deployment) []ctrl.Request {
			return w.ownerRequests(metav1.GetControllerOf(d))
		}),
		predicate.TypedResourceVersionChangedPredicate[*appsv1.Deployment]{}))
	return b
}

func (w Watch) owner(ctx context.Context, object metadataOnly) []ctrl.Request {
	controller := metav1.GetControllerOf(object)
	if controller == nil && w.Unowned != nil {
		return w.Unowned(ctx)
	}
	return w.ownerRequests(controller)
}

func (w Watch) ownerRequests(controller *metav1.OwnerReference) []ctrl.Request {
	if controller == nil || controller.Kind != w.Kind {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: controller.Name}}}
}

func (w Watch) recordRequests(ctx context.Context, record metadataOnly) []ctrl.Request {
	release := record.Labels["name"]
	if name, ok := strings.CutSuffix(release, w.ReleaseSuffix); ok {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	}
	if w.Unowned != nil {
		return w.Unowned(ctx)
	}
	return nil
}

// appliedFieldsChanged ignores writes of other clients, such as status updates.
var appliedFieldsChanged = predicate.TypedFuncs[metadataOnly]{
	UpdateFunc: func(e event.TypedUpdateEvent[metadataOnly]) bool {
		return appliedStateOf(e.ObjectOld) != appliedStateOf(e.ObjectNew) || !e.ObjectNew.DeletionTimestamp.IsZero()
	},
}

// deployedRecords ignores attempts that are running or have failed. They are our own: to reconcile because of them would be
// to retry without a delay.
var deployedRecords = predicate.TypedFuncs[metadataOnly]{
	CreateFunc: func(e event.TypedCreateEvent[metadataOnly]) bool { return deployed(e.Object) },
	DeleteFunc: func(e event.TypedDeleteEvent[metadataOnly]) bool { return deployed(e.Object) },
	UpdateFunc: func(e event.TypedUpdateEvent[metadataOnly]) bool {
		return deployed(e.ObjectOld) || deployed(e.ObjectNew)
	},
	GenericFunc: func(event.TypedGenericEvent[metadataOnly]) bool { return false },
}

func deployed(record metadataOnly) bool {
	return release.StateOf([]metav1.PartialObjectMetadata{*record}).Deployed()
}

var existenceChanged = predicate.TypedFuncs[metadataOnly]{
	UpdateFunc: func(e event.TypedUpdateEvent[metadataOnly]) bool {
		return e.ObjectOld.DeletionTimestamp.IsZero() != e.ObjectNew.DeletionTimestamp.IsZero()
	},
}
