package generate

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// setupUniversal adds the controller that makes MeshServices for what Dataplanes serve. What is asked for is a service of a
// mesh: its request has the mesh where others have the namespace.
func (r *registrar) setupUniversal(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("meshservice-universal").WithOptions(options(atOnce)).
		Watches(&kumav1alpha1.Dataplane{}, handler.EnqueueRequestsFromMapFunc(r.servedBy), builder.WithPredicates(specChanged)).
		Watches(&kumav1alpha1.MeshService{}, handler.EnqueueRequestsFromMapFunc(r.meant), builder.WithPredicates(specChanged)).
		Watches(&kumav1alpha1.Mesh{}, handler.EnqueueRequestsFromMapFunc(r.servedIn), builder.WithPredicates(specChanged)).
		Complete(calm{reconcile.Func(r.reconcileUniversal)})
	if err != nil {
		return fmt.Errorf("watch Dataplanes: %w", err)
	}
	return nil
}

func serviceIn(mesh, service string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: mesh, Name: service}}
}

func (r *registrar) servedBy(_ context.Context, object client.Object) []reconcile.Request {
	dataplane, ok := object.(*kumav1alpha1.Dataplane)
	if !ok {
		return nil
	}
	var all []reconcile.Request
	for _, service := range desired.ServicesOf(dataplane, r.Where) {
		all = append(all, serviceIn(desired.MeshOf(dataplane), service))
	}
	return all
}

// meant are the services that a MeshService may stand for, or that may wait for its name.
func (r *registrar) meant(ctx context.Context, object client.Object) []reconcile.Request {
	all := []reconcile.Request{serviceIn(desired.MeshOf(object), desired.IdentityOf(object, r.Where).Name)}
	var meshes kumav1alpha1.MeshList
	if err := r.cache.List(ctx, &meshes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find meshes")
	}
	for i := range meshes.Items {
		all = append(all, serviceIn(meshes.Items[i].Name, object.GetName()))
	}
	return all
}

// servedIn are all services of a mesh, and those that have been.
func (r *registrar) servedIn(ctx context.Context, mesh client.Object) []reconcile.Request {
	of := []client.ListOption{client.MatchingFields{byMesh: mesh.GetName()}, client.UnsafeDisableDeepCopy}
	var dataplanes kumav1alpha1.DataplaneList
	var services kumav1alpha1.MeshServiceList
	for _, list := range []client.ObjectList{&dataplanes, &services} {
		if err := r.cache.List(ctx, list, of...); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "find what is in a mesh", "mesh", mesh.GetName())
		}
	}
	var all []reconcile.Request
	for i := range dataplanes.Items {
		all = append(all, r.servedBy(ctx, &dataplanes.Items[i])...)
	}
	for i := range services.Items {
		all = append(all, serviceIn(mesh.GetName(), desired.IdentityOf(&services.Items[i], r.Where).Name))
	}
	return all
}

// reconcileUniversal makes the MeshService for one value of kuma.io/service.
func (r *registrar) reconcileUniversal(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	mesh, service := request.Namespace, request.Name
	if !desired.IsName(service) {
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
		return reconcile.Result{}, r.remove(ctx, there)
	}
	dataplanes, err := r.dataplanesWith(ctx, pair(mesh, kumav1alpha1.TagService, service))
	if err != nil {
		return reconcile.Result{}, err
	}
	ports, _ := desired.UniversalPorts(service, dataplanes)
	switch {
	case len(ports) > 0:
		_, err := r.keepMeshService(ctx, desired.UniversalService(name, service, mesh, ports, r.Where))
		return reconcile.Result{}, err
	case there == nil:
		return reconcile.Result{}, nil
	default:
		return r.retire(ctx, there)
	}
}

// universalName is the name of the MeshService for a service, and the one that is there already.
func (r *registrar) universalName(ctx context.Context, service, mesh string) (there *kumav1alpha1.MeshService, name string, free bool, err error) {
	found := map[string]*kumav1alpha1.MeshService{}
	name, free = desired.UniversalName(service, mesh, func(name string) *kumav1alpha1.MeshService {
		var one kumav1alpha1.MeshService
		if e := r.client.Get(ctx, client.ObjectKey{Namespace: r.SystemNamespace, Name: name}, &one); e == nil {
			found[name] = &one
		} else if !apierrors.IsNotFound(e) {
			err = e
		}
		return found[name]
	}, r.Where)
	return found[name], name, free, err
}

// retire removes a MeshService that nothing has served for the grace. Since when is written down, so that who starts again
// does not wait again.
func (r *registrar) retire(ctx context.Context, service *kumav1alpha1.MeshService) (reconcile.Result, error) {
	since, err := time.Parse(time.RFC3339, service.Annotations[annotationUnused])
	if err != nil && r.Grace > 0 {
		now := service.DeepCopy()
		if now.Annotations == nil {
			now.Annotations = map[string]string{}
		}
		now.Annotations[annotationUnused] = r.now().UTC().Format(time.RFC3339)
		return reconcile.Result{RequeueAfter: r.Grace}, r.update(ctx, service, now)
	}
	if left := r.Grace - r.now().Sub(since); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return reconcile.Result{}, r.remove(ctx, service)
}

// dataplanesWith are the Dataplanes with a pair that they can be selected by.
func (r *registrar) dataplanesWith(ctx context.Context, pair string) ([]*kumav1alpha1.Dataplane, error) {
	var list kumav1alpha1.DataplaneList
	if err := r.cache.List(ctx, &list, client.MatchingFields{byTag: pair}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var all []*kumav1alpha1.Dataplane
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}
