package generate

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// setupServices adds the controller of MeshServices of Services.
func (r *reconciler) setupServices(mgr ctrl.Manager) error {
	b := newController(mgr, "services", maxConcurrent).
		For(&corev1.Service{}).
		Watches(&kumav1alpha1.MeshService{}, handler.EnqueueRequestsFromMapFunc(serviceOf), builder.WithPredicates(specChanged)).
		Watches(&kumav1alpha1.Mesh{}, handler.EnqueueRequestsFromMapFunc(r.servicesOfMesh), builder.WithPredicates(meshChanged)).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.servicesOfNamespace), builder.WithPredicates(metadataChanged)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.headlessServicesOf), builder.WithPredicates(podChanged))
	return r.complete(b, "Services", r.reconcileService)
}

// serviceOf returns the Service of a MeshService, and the one that may be blocked by its name.
func serviceOf(_ context.Context, object client.Object) []reconcile.Request {
	all := []reconcile.Request{request(object)}
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Name != object.GetName() {
		all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name}})
	}
	return all
}

func (r *reconciler) servicesOfMesh(ctx context.Context, mesh client.Object) []reconcile.Request {
	return kube.RequestsMatching(ctx, r.cache, &corev1.ServiceList{}, func(service *corev1.Service) bool {
		namespace, err := r.namespace(ctx, service.Namespace)
		return err == nil && desired.MeshOfWorkload(service, namespace) == mesh.GetName()
	})
}

func (r *reconciler) servicesOfNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.requests(ctx, &corev1.ServiceList{}, client.InNamespace(namespace.GetName()))
}

func (r *reconciler) headlessServicesOf(ctx context.Context, pod client.Object) []reconcile.Request {
	var all []reconcile.Request
	services, err := r.servicesSelecting(ctx, pod.(*corev1.Pod))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the Services of a pod", "pod", pod.GetName())
	}
	for _, service := range services {
		if desired.IsHeadless(service) {
			all = append(all, request(service))
		}
	}
	return all
}

// reconcileService applies the MeshServices of a Service, and deletes those that are no longer desired.
func (r *reconciler) reconcileService(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var service corev1.Service
	if err := r.client.Get(ctx, request.NamespacedName, &service); err != nil {
		// The garbage collector deletes its MeshServices.
		r.events.Forget(isAbout("Service", request.NamespacedName))
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	want, err := r.desiredMeshServices(ctx, &service)
	if err != nil {
		return reconcile.Result{}, err
	}
	refused, err := r.refusedMesh(ctx, &service)
	if err != nil {
		return reconcile.Result{}, err
	}
	have, err := r.meshServicesOwnedBy(ctx, &service)
	if err != nil {
		return reconcile.Result{}, err
	}
	var errs []error
	wanted, blocked := map[string]bool{}, ""
	for _, one := range want {
		wanted[one.Name] = true
		kept, err := r.applyMeshService(ctx, one)
		if !kept && err == nil {
			blocked = fmt.Sprintf("MeshService %s/%s exists and is not managed by Fairlead: delete the MeshService, or exclude the Service from the mesh with the annotation %s: \"true\"",
				one.Namespace, one.Name, kumav1alpha1.AnnotationIgnore)
		}
		errs = append(errs, err)
	}
	reason := kumav1alpha1.ReasonUnmanaged
	if refused != "" {
		reason, blocked = kumav1alpha1.ReasonNotAllowed, refused
	}
	r.warnOnce(&service, reason, "generate", blocked)
	for i := range have {
		if one := &have[i]; !wanted[one.Name] && desired.IsGenerated(one, r.ZoneInfo) {
			errs = append(errs, r.delete(ctx, one))
		}
	}
	return reconcile.Result{}, errors.Join(errs...)
}

func (r *reconciler) meshServicesOwnedBy(ctx context.Context, service *corev1.Service) ([]kumav1alpha1.MeshService, error) {
	var list kumav1alpha1.MeshServiceList
	err := r.client.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingFields{byOwner: service.Name})
	return list.Items, err
}

// refusedMesh says that a Service names a mesh that it may not join; it is empty if it may.
func (r *reconciler) refusedMesh(ctx context.Context, service *corev1.Service) (string, error) {
	namespace, err := r.namespace(ctx, service.Namespace)
	if err != nil || !desired.IsInMesh(service, namespace) {
		return "", err
	}
	mesh := desired.RefusedMesh(service, namespace, r.ZoneInfo)
	if mesh == "" {
		return "", nil
	}
	return desired.RefusedMeshText("Service", service.Namespace, mesh, desired.RulesOf(namespace)), nil
}

func (r *reconciler) desiredMeshServices(ctx context.Context, service *corev1.Service) ([]*kumav1alpha1.MeshService, error) {
	namespace, err := r.namespace(ctx, service.Namespace)
	if err != nil || !desired.IsInMesh(service, namespace) {
		return nil, err
	}
	mode, _, err := r.modeOf(ctx, desired.MeshOfWorkload(service, namespace))
	if err != nil || mode == kumav1alpha1.ModeDisabled {
		return nil, err
	}
	var pods []*corev1.Pod
	var there []*kumav1alpha1.MeshService
	if desired.IsHeadless(service) {
		have, err := r.meshServicesOwnedBy(ctx, service)
		if err != nil {
			return nil, err
		}
		there = pointersTo(have)
		var list corev1.PodList
		err = r.cache.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector), client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, err
		}
		pods = pointersTo(list.Items)
	}
	return desired.MeshServicesOf(service, namespace, pods, there, r.ZoneInfo), nil
}
