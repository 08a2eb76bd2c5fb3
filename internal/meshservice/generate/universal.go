package generate

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// annotationUnused is, on a generated MeshService, since when no Dataplane serves it.
const annotationUnused = "fairlead.dev/unused-since"

// setupUniversal adds the controller of MeshServices of Dataplanes. A request has the mesh as namespace, and the service as
// name.
func (r *reconciler) setupUniversal(mgr ctrl.Manager) error {
	b := newController(mgr, "universal", maxConcurrent).
		Watches(&kumav1alpha1.Dataplane{}, handler.EnqueueRequestsFromMapFunc(r.servicesOfDataplane), builder.WithPredicates(specChanged)).
		Watches(&kumav1alpha1.MeshService{}, handler.EnqueueRequestsFromMapFunc(r.servicesOfMeshService), builder.WithPredicates(specChanged)).
		Watches(&kumav1alpha1.Mesh{}, handler.EnqueueRequestsFromMapFunc(r.universalServicesOfMesh), builder.WithPredicates(meshChanged))
	return r.complete(b, "Dataplanes", r.reconcileUniversal)
}

func serviceRequest(mesh, service string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: mesh, Name: service}}
}

// servicesOfDataplane returns the values of kuma.io/service that a Dataplane serves.
func (r *reconciler) servicesOfDataplane(ctx context.Context, object client.Object) []reconcile.Request {
	rules, err := r.rulesOf(ctx, object.GetNamespace())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "get the namespace of a Dataplane", "dataplane", object.GetName())
		return nil
	}
	var all []reconcile.Request
	for _, service := range desired.ServicesOf(object.(*kumav1alpha1.Dataplane), rules, r.ZoneInfo) {
		all = append(all, serviceRequest(desired.MeshOf(object), service))
	}
	return all
}

// servicesOfMeshService returns the services that a MeshService may belong to, or that may be blocked by its name.
func (r *reconciler) servicesOfMeshService(ctx context.Context, object client.Object) []reconcile.Request {
	all := []reconcile.Request{serviceRequest(desired.MeshOf(object), desired.IdentityOf(object, r.ZoneInfo).Name)}
	var meshes kumav1alpha1.MeshList
	if err := r.cache.List(ctx, &meshes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list Meshes")
	}
	for i := range meshes.Items {
		all = append(all, serviceRequest(meshes.Items[i].Name, object.GetName()))
	}
	return all
}

// universalServicesOfMesh returns all services of a mesh, including those with a MeshService only.
func (r *reconciler) universalServicesOfMesh(ctx context.Context, mesh client.Object) []reconcile.Request {
	of := []client.ListOption{client.MatchingFields{byMesh: mesh.GetName()}, client.UnsafeDisableDeepCopy}
	var dataplanes kumav1alpha1.DataplaneList
	var services kumav1alpha1.MeshServiceList
	for _, list := range []client.ObjectList{&dataplanes, &services} {
		if err := r.cache.List(ctx, list, of...); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the Dataplanes and MeshServices of a mesh", "mesh", mesh.GetName())
		}
	}
	var all []reconcile.Request
	for i := range dataplanes.Items {
		all = append(all, r.servicesOfDataplane(ctx, &dataplanes.Items[i])...)
	}
	for i := range services.Items {
		all = append(all, serviceRequest(mesh.GetName(), desired.IdentityOf(&services.Items[i], r.ZoneInfo).Name))
	}
	return all
}

// reconcileUniversal applies the MeshService of one value of kuma.io/service.
func (r *reconciler) reconcileUniversal(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	mesh, service := request.Namespace, request.Name
	if !desired.IsMeshServiceName(service) {
		return reconcile.Result{}, nil
	}
	there, name, free, err := r.universalName(ctx, service, mesh)
	if err != nil || !free {
		return reconcile.Result{}, err
	}
	mode, _, err := r.modeOf(ctx, mesh)
	if err != nil {
		return reconcile.Result{}, err
	}
	if mode == kumav1alpha1.ModeDisabled {
		if there == nil {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, r.delete(ctx, there)
	}
	dataplanes, err := r.dataplanesWith(ctx, pair(mesh, kumav1alpha1.TagService, service))
	if err != nil {
		return reconcile.Result{}, err
	}
	ports, _ := desired.UniversalPorts(service, dataplanes)
	switch {
	case len(ports) > 0:
		_, err := r.applyMeshService(ctx, desired.UniversalService(name, service, mesh, ports, r.ZoneInfo))
		return reconcile.Result{}, err
	case there == nil:
		return reconcile.Result{}, nil
	default:
		return r.deleteAfterGrace(ctx, there)
	}
}

// deleteAfterGrace deletes a MeshService that no Dataplane has served for the grace period, which is recorded in an
// annotation and so survives a restart.
func (r *reconciler) deleteAfterGrace(ctx context.Context, service *kumav1alpha1.MeshService) (reconcile.Result, error) {
	since, err := time.Parse(time.RFC3339, service.Annotations[annotationUnused])
	if err != nil && r.Grace > 0 {
		now := service.DeepCopy()
		metav1.SetMetaDataAnnotation(&now.ObjectMeta, annotationUnused, r.now().UTC().Format(time.RFC3339))
		return reconcile.Result{RequeueAfter: r.Grace}, r.update(ctx, service, now)
	}
	if left := r.Grace - r.now().Sub(since); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return reconcile.Result{}, r.delete(ctx, service)
}
