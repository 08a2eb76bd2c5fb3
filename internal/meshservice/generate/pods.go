package generate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// setupPods adds the controller of Dataplanes of pods.
func (r *reconciler) setupPods(mgr ctrl.Manager) error {
	p := &pods{reconciler: r, owners: newOwnerCache(r.live)}
	err := ctrl.NewControllerManagedBy(mgr).Named("meshservice-pods").WithOptions(options(maxConcurrent)).
		WatchesRawSource(source.Kind(r.workloads, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}, podChanged)).
		Watches(&kumav1alpha1.Dataplane{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(specChanged)).
		Watches(&corev1.Service{}, enqueueOldAndNew(p.enqueueSelected)).
		Watches(&kumav1alpha1.Mesh{}, handler.EnqueueRequestsFromMapFunc(p.allPods), builder.WithPredicates(createdOrDeleted)).
		WatchesRawSource(source.Kind(r.workloads, metadataOf("v1", "Namespace"),
			handler.TypedEnqueueRequestsFromMapFunc(p.podsOfNamespace), namespaceChanged)).
		Complete(kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: reconcile.Func(p.reconcile)})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	return nil
}

type pods struct {
	*reconciler
	owners *ownerCache
}

// enqueueSelected enqueues the pods that a Service selects.
func (p *pods) enqueueSelected(ctx context.Context, object client.Object, q queue) {
	service, ok := object.(*corev1.Service)
	if !ok || len(service.Spec.Selector) == 0 {
		return
	}
	for _, request := range p.listPods(ctx, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector)) {
		q.Add(request)
	}
}

// allPods returns all pods: their mesh depends on their namespaces.
func (p *pods) allPods(ctx context.Context, _ client.Object) []reconcile.Request {
	return p.listPods(ctx)
}

func (p *pods) podsOfNamespace(ctx context.Context, namespace *metav1.PartialObjectMetadata) []reconcile.Request {
	return p.listPods(ctx, client.InNamespace(namespace.Name))
}

func (p *pods) listPods(ctx context.Context, in ...client.ListOption) []reconcile.Request {
	var list corev1.PodList
	if err := p.workloads.List(ctx, &list, append(in, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list pods")
		return nil
	}
	all := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, request(&list.Items[i]))
	}
	return all
}

// reconcile creates, updates or deletes the Dataplane of a pod.
func (p *pods) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var there kumav1alpha1.Dataplane
	err := p.client.Get(ctx, request.NamespacedName, &there)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	exists := err == nil
	if exists && !desired.IsGeneratedDataplane(&there) {
		return reconcile.Result{}, nil
	}
	want, err := p.desiredDataplane(ctx, request.NamespacedName, &there)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case want == nil && exists:
		return reconcile.Result{}, p.delete(ctx, &there)
	case want == nil:
		return reconcile.Result{}, nil
	case !exists:
		return reconcile.Result{}, p.create(ctx, want)
	}
	now := there.DeepCopy()
	desired.MergeMetadata(now, want)
	now.Spec = want.Spec
	return reconcile.Result{}, p.update(ctx, &there, now)
}

// desiredDataplane returns the Dataplane of a pod, nil if it should have none.
func (p *pods) desiredDataplane(ctx context.Context, key client.ObjectKey, there *kumav1alpha1.Dataplane) (*kumav1alpha1.Dataplane, error) {
	var pod corev1.Pod
	if err := p.workloads.Get(ctx, key, &pod, client.UnsafeDisableDeepCopy); err != nil {
		p.events.Forget(isAbout("Pod", key))
		return nil, client.IgnoreNotFound(err)
	}
	namespace, err := p.namespace(ctx, pod.Namespace)
	if err != nil || !desired.HasProxy(&pod, namespace) {
		return nil, err
	}
	if _, found, err := p.modeOf(ctx, desired.MeshOfWorkload(&pod, namespace)); err != nil || !found {
		return nil, err
	}
	services, err := p.servicesSelecting(ctx, &pod)
	if err != nil {
		return nil, err
	}
	consumer := there.Annotations[kumav1alpha1.AnnotationConsumer]
	if consumer == "" || !metav1.IsControlledBy(there, &pod) {
		if consumer, err = p.owners.consumerOf(ctx, &pod); err != nil {
			return nil, err
		}
	}
	want, problem := desired.DataplaneOf(&pod, namespace, services, consumer, there, p.ZoneInfo)
	p.reportAnnotations(&pod, problem)
	desired.RecordLabels(want)
	return want, nil
}
