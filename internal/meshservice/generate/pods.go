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

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// setupPods adds the controller of Dataplanes of pods.
func (r *reconciler) setupPods(mgr ctrl.Manager) error {
	b := newController(mgr, "pods", maxConcurrent).
		For(&corev1.Pod{}, builder.WithPredicates(podChanged)).
		Watches(&kumav1alpha1.Dataplane{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(specChanged)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.podsSelectedBy)).
		Watches(&kumav1alpha1.Mesh{}, handler.EnqueueRequestsFromMapFunc(r.allPods), builder.WithPredicates(createdOrDeleted)).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.podsOfNamespace), builder.WithPredicates(metadataChanged))
	return r.complete(b, "pods", r.reconcilePod)
}

// podsSelectedBy returns the pods that a Service selects.
func (r *reconciler) podsSelectedBy(ctx context.Context, object client.Object) []reconcile.Request {
	service := object.(*corev1.Service)
	if len(service.Spec.Selector) == 0 {
		return nil
	}
	return r.requests(ctx, &corev1.PodList{}, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector))
}

// allPods returns all pods: their mesh depends on their namespaces.
func (r *reconciler) allPods(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requests(ctx, &corev1.PodList{})
}

// podsOfNamespace returns the pods of a namespace, and the Dataplanes that somebody wrote there.
func (r *reconciler) podsOfNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	in := client.InNamespace(namespace.GetName())
	return append(r.requests(ctx, &corev1.PodList{}, in), r.requests(ctx, &kumav1alpha1.DataplaneList{}, in)...)
}

// reconcilePod creates, updates or deletes the Dataplane of a pod.
func (r *reconciler) reconcilePod(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var there kumav1alpha1.Dataplane
	err := r.client.Get(ctx, request.NamespacedName, &there)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	exists := err == nil
	if exists && !desired.IsGeneratedDataplane(&there) {
		return reconcile.Result{}, r.warnOfRefusals(ctx, &there)
	}
	want, err := r.desiredDataplane(ctx, request.NamespacedName, &there)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case want == nil && exists:
		return reconcile.Result{}, r.delete(ctx, &there)
	case want == nil:
		return reconcile.Result{}, nil
	case !exists:
		return reconcile.Result{}, r.create(ctx, want)
	}
	now := there.DeepCopy()
	desired.MergeMetadata(now, want)
	now.Spec = want.Spec
	return reconcile.Result{}, r.update(ctx, &there, now)
}

// warnOfRefusals records what is ignored of a Dataplane that somebody wrote.
func (r *reconciler) warnOfRefusals(ctx context.Context, dataplane *kumav1alpha1.Dataplane) error {
	rules, err := r.rulesOf(ctx, dataplane.Namespace)
	if err != nil {
		return err
	}
	r.warnOnce(dataplane, kumav1alpha1.ReasonNotAllowed, "join", refusalsText(desired.RefusalsOf(dataplane, rules, r.ZoneInfo)))
	return nil
}

// desiredDataplane returns the Dataplane of a pod, nil if it should have none.
func (r *reconciler) desiredDataplane(ctx context.Context, key client.ObjectKey, there *kumav1alpha1.Dataplane) (*kumav1alpha1.Dataplane, error) {
	var pod corev1.Pod
	if err := r.cache.Get(ctx, key, &pod, client.UnsafeDisableDeepCopy); err != nil {
		r.events.Forget(isAbout("Pod", key))
		r.events.Forget(isAbout(kumav1alpha1.DataplaneKind, key))
		return nil, client.IgnoreNotFound(err)
	}
	namespace, err := r.namespace(ctx, pod.Namespace)
	if err != nil || !desired.HasProxy(&pod, namespace) {
		return nil, err
	}
	if mesh := desired.RefusedMesh(&pod, namespace, r.ZoneInfo); mesh != "" {
		r.warnOnce(&pod, kumav1alpha1.ReasonNotAllowed, "join", desired.RefusedMeshText("pod", pod.Namespace, mesh, desired.RulesOf(namespace)))
		return nil, nil
	}
	if _, found, err := r.modeOf(ctx, desired.MeshOfWorkload(&pod, namespace)); err != nil || !found {
		return nil, err
	}
	services, err := r.servicesSelecting(ctx, &pod)
	if err != nil {
		return nil, err
	}
	consumer := there.Annotations[kumav1alpha1.AnnotationConsumer]
	if consumer == "" || !metav1.IsControlledBy(there, &pod) {
		if consumer, err = r.consumerOf(ctx, &pod); err != nil {
			return nil, err
		}
	}
	want, problem := desired.DataplaneOf(&pod, namespace, services, consumer, there, r.ZoneInfo)
	text := ""
	if problem != nil {
		text = problem.Error() + "; the reachable backends of the pod stay unchanged"
	}
	r.warnOnce(&pod, ReasonMalformed, "generate", text)
	desired.RecordLabels(want)
	return want, nil
}

// maxOwners bounds the cache of owners.
const maxOwners = 4096

// consumerOf returns the workload of a pod.
func (r *reconciler) consumerOf(ctx context.Context, pod metav1.Object) (string, error) {
	owner := metav1.GetControllerOf(pod)
	if !desired.IsIntermediateOwner(owner) {
		return desired.ConsumerOf(pod, nil), nil
	}
	ownersOwner, found := r.owners.Get(owner.UID)
	if !found {
		between := metadataOf(owner.APIVersion, owner.Kind)
		err := client.IgnoreNotFound(r.live.Get(ctx, client.ObjectKey{Namespace: pod.GetNamespace(), Name: owner.Name}, between))
		if err != nil {
			return "", fmt.Errorf("get %s %s/%s, the owner of pod %s: %w", owner.Kind, pod.GetNamespace(), owner.Name, pod.GetName(), err)
		}
		ownersOwner = metav1.GetControllerOf(between)
		r.owners.Add(owner.UID, ownersOwner)
	}
	return desired.ConsumerOf(pod, ownersOwner.(*metav1.OwnerReference)), nil
}
