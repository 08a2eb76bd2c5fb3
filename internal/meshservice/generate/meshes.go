package generate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// setupMeshes adds the controller that tells what is generated in a mesh.
func (r *reconciler) setupMeshes(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("meshservice-meshes").WithOptions(options(1)).
		For(&kumav1alpha1.Mesh{}).
		Watches(&kumav1alpha1.MeshService{}, enqueueOldAndNew(r.enqueueMesh), builder.WithPredicates(predicate.Or[client.Object](specChanged, firstObserved)))
	if r.IsUniversal() {
		b = b.Watches(&kumav1alpha1.Dataplane{}, enqueueOldAndNew(r.enqueueMesh), builder.WithPredicates(specChanged))
	} else {
		b = b.Watches(&corev1.Service{}, enqueueOldAndNew(r.enqueueMeshOfService)).
			WatchesRawSource(source.Kind(r.workloads, metadataOf("v1", "Namespace"),
				handler.TypedEnqueueRequestsFromMapFunc(r.allMeshes), namespaceChanged))
	}
	if err := b.Complete(requeueOnConflict{reconcile.Func(r.reconcileMesh)}); err != nil {
		return fmt.Errorf("watch Meshes: %w", err)
	}
	return nil
}

// reconcileMesh tells which mode is in force, and what is generated.
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
	condition, mode := in.condition(mesh.Mode()), in.inForce(&mesh, stalled)
	if mode != mesh.Mode() {
		condition.Message += fmt.Sprintf("; until then mode %s is in force", mode)
	}
	return reconcile.Result{RequeueAfter: again}, r.patchMeshStatus(ctx, &mesh, condition, func(status *kumav1alpha1.MeshStatus) {
		status.ObservedGeneration, status.Mode = mesh.Generation, mode
		status.MeshServices = &kumav1alpha1.MeshServiceCount{Total: int32(len(services.Items))}
	})
}

// compareServices compares what the Services of a mesh ask for with what there is.
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

// servicesIn are the Services of a mesh, but those that go with their namespace.
func (r *reconciler) servicesIn(ctx context.Context, mesh string) ([]*corev1.Service, error) {
	namespaces := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}}
	if err := r.workloads.List(ctx, namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var all []*corev1.Service
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		if namespace.DeletionTimestamp != nil {
			continue
		}
		// Those that say nothing are of the namespace's mesh; the others are known by what they say.
		said := []string{mesh}
		if desired.IsInjected(namespace) && desired.MeshOfWorkload(namespace, namespace) == mesh {
			said = append(said, "")
		}
		for _, word := range said {
			var services corev1.ServiceList
			err := r.cache.List(ctx, &services, client.InNamespace(namespace.Name), client.MatchingFields{byMesh: word}, client.UnsafeDisableDeepCopy)
			if err != nil {
				return nil, err
			}
			for i := range services.Items {
				all = append(all, &services.Items[i])
			}
		}
	}
	return all, nil
}

// compareDataplanes compares what the Dataplanes of a mesh serve with what there is.
func (r *reconciler) compareDataplanes(ctx context.Context, mesh string, in *generationStatus) error {
	var dataplanes kumav1alpha1.DataplaneList
	if err := r.cache.List(ctx, &dataplanes, client.MatchingFields{byMesh: mesh}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	served := map[string]bool{}
	for i := range dataplanes.Items {
		for _, service := range desired.ServicesOf(&dataplanes.Items[i], r.ZoneInfo) {
			served[service] = true
		}
	}
	for service := range served {
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

// patchMeshStatus writes what there is to say of a Mesh, if it differs from what is there. Others write in the same status: what
// is written carries the version that was looked at.
func (r *reconciler) patchMeshStatus(ctx context.Context, mesh *kumav1alpha1.Mesh, condition metav1.Condition, more func(*kumav1alpha1.MeshStatus)) error {
	now := mesh.DeepCopy()
	condition.ObservedGeneration = mesh.Generation
	meta.SetStatusCondition(&now.Status.Conditions, condition)
	more(&now.Status)
	if desired.Equal(mesh, now) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, now, optimisticLock(mesh), client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of Mesh %s: %w", mesh.Name, err)
	}
	return nil
}
