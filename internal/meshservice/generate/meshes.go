package generate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/meshstatus"
)

// setupMeshes adds the controller that reports on the generation in a mesh.
func (r *reconciler) setupMeshes(mgr ctrl.Manager) error {
	b := newController(mgr, "meshes", 1).
		For(&kumav1alpha1.Mesh{}).
		Watches(&kumav1alpha1.MeshService{}, kube.EnqueueAfter(statusDebounce, meshOf), builder.WithPredicates(predicate.Or[client.Object](specChanged, firstObserved)))
	if r.IsUniversal() {
		b = b.Watches(&kumav1alpha1.Dataplane{}, kube.EnqueueAfter(statusDebounce, meshOf), builder.WithPredicates(specChanged))
	} else {
		b = b.Watches(&corev1.Service{}, kube.EnqueueAfter(statusDebounce, r.meshOfService)).
			WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.allMeshes), builder.WithPredicates(metadataChanged))
	}
	return complete(b, "Meshes", r.reconcileMesh)
}

// reconcileMesh reports the mode in force and the generated MeshServices.
func (r *reconciler) reconcileMesh(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var mesh kumav1alpha1.Mesh
	if err := r.client.Get(ctx, request.NamespacedName, &mesh); err != nil || mesh.DeletionTimestamp != nil {
		delete(r.stalls, request.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var services kumav1alpha1.MeshServiceList
	if err := r.client.List(ctx, &services, client.MatchingFields{byMesh: mesh.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, err
	}
	in := generationStatus{total: len(services.Items)}
	for i := range services.Items {
		if desired.IsGenerated(&services.Items[i], r.ZoneInfo) {
			in.generated++
		}
	}
	if mesh.Mode() != kumav1alpha1.ModeDisabled {
		compare := r.compareServices
		if r.IsUniversal() {
			compare = r.compareDataplanes
		}
		if err := compare(ctx, mesh.Name, &in); err != nil {
			return reconcile.Result{}, err
		}
	}
	stalled, again := r.stalls.stalled(mesh.Name, len(in.pending), r.now())
	condition, mode := in.condition(mesh.Mode()), in.nextMode(&mesh, stalled)
	if mode != mesh.Mode() {
		condition.Message += fmt.Sprintf("; until then mode %s is in force", mode)
	}
	_, err := meshstatus.Apply(ctx, r.client, &mesh, meshstatus.Generation, condition, func(status *kumav1alpha1.MeshStatus) {
		status.ObservedGeneration, status.Mode = mesh.Generation, mode
		status.MeshServices = &kumav1alpha1.MeshServiceCount{Total: int32(len(services.Items))}
	})
	return reconcile.Result{RequeueAfter: again}, client.IgnoreNotFound(err)
}

// compareServices compares the MeshServices of Services with the existing ones.
func (r *reconciler) compareServices(ctx context.Context, mesh string, in *generationStatus) error {
	services, err := r.servicesIn(ctx, mesh)
	if err != nil {
		return err
	}
	for _, service := range services {
		want, err := r.desiredMeshServices(ctx, service)
		if err != nil {
			return err
		}
		for _, one := range want {
			there := &kumav1alpha1.MeshService{}
			if err := r.client.Get(ctx, client.ObjectKeyFromObject(one), there, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
				there = nil
			} else if err != nil {
				return err
			}
			in.compare(one, there, r.ZoneInfo)
		}
	}
	return nil
}

// compareDataplanes compares the MeshServices of Dataplanes with the existing ones.
func (r *reconciler) compareDataplanes(ctx context.Context, mesh string, in *generationStatus) error {
	served, err := r.localTags(ctx, mesh)
	if err != nil {
		return err
	}
	for service := range sets.New(served...) {
		if !desired.IsMeshServiceName(service) {
			in.nameless = append(in.nameless, service)
			continue
		}
		there, name, free, err := r.universalName(ctx, service, mesh)
		switch {
		case err != nil:
			return err
		case !free:
			in.blocked = append(in.blocked, service)
		default:
			in.compare(desired.UniversalService(name, service, mesh, nil, r.ZoneInfo), there, r.ZoneInfo)
		}
	}
	return nil
}
