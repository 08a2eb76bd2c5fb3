package generate

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// setupPods adds the controller of Dataplanes of pods.
func (r *reconciler) setupPods(mgr ctrl.Manager) error {
	p := &pods{reconciler: r, owners: newOwnerCache(r.live)}
	b := newController(mgr, "pods", maxConcurrent).
		WatchesRawSource(source.Kind(r.workloads, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}, podChanged)).
		Watches(&kumav1alpha1.Dataplane{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(specChanged)).
		Watches(&corev1.Service{}, enqueueOldAndNew(p.enqueueSelected)).
		Watches(&kumav1alpha1.Mesh{}, handler.EnqueueRequestsFromMapFunc(p.allPods), builder.WithPredicates(createdOrDeleted)).
		WatchesRawSource(source.Kind(r.workloads, metadataOf("v1", "Namespace"),
			handler.TypedEnqueueRequestsFromMapFunc(p.podsOfNamespace), namespaceChanged))
	return complete(b, "pods", p.reconcile)
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
	selected := []client.ListOption{client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector)}
	for _, request := range requests(ctx, p.workloads, &corev1.PodList{}, nil, selected...) {
		q.Add(request)
	}
}

// allPods returns all pods: their mesh depends on their namespaces.
func (p *pods) allPods(ctx context.Context, _ client.Object) []reconcile.Request {
	return requests(ctx, p.workloads, &corev1.PodList{}, nil)
}

func (p *pods) podsOfNamespace(ctx context.Context, namespace *metav1.PartialObjectMetadata) []reconcile.Request {
	return requests(ctx, p.workloads, &corev1.PodList{}, nil, client.InNamespace(namespace.Name))
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

// maxOwners bounds the cache.
const maxOwners = 4096

// ownerCache caches the owners of ReplicaSets and Jobs, which never change.
type ownerCache struct {
	live   client.Reader
	mu     sync.Mutex
	owners map[types.UID]*metav1.OwnerReference
}

func newOwnerCache(live client.Reader) *ownerCache {
	return &ownerCache{live: live, owners: map[types.UID]*metav1.OwnerReference{}}
}

// consumerOf returns the workload of a pod.
func (m *ownerCache) consumerOf(ctx context.Context, pod metav1.Object) (string, error) {
	owner := metav1.GetControllerOf(pod)
	if !desired.IsIntermediateOwner(owner) {
		return desired.ConsumerOf(pod, nil), nil
	}
	m.mu.Lock()
	ownersOwner, found := m.owners[owner.UID]
	m.mu.Unlock()
	if found {
		return desired.ConsumerOf(pod, ownersOwner), nil
	}
	between := metadataOf(owner.APIVersion, owner.Kind)
	err := client.IgnoreNotFound(m.live.Get(ctx, client.ObjectKey{Namespace: pod.GetNamespace(), Name: owner.Name}, between))
	if err != nil {
		return "", fmt.Errorf("get %s %s/%s, the owner of pod %s: %w", owner.Kind, pod.GetNamespace(), owner.Name, pod.GetName(), err)
	}
	ownersOwner = metav1.GetControllerOf(between)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.owners) >= maxOwners {
		clear(m.owners)
	}
	m.owners[owner.UID] = ownersOwner
	return desired.ConsumerOf(pod, ownersOwner), nil
}
