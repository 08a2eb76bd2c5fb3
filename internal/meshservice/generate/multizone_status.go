package generate

import (
	"cmp"
	"context"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

func (s *statuses) setupMultiZone(mgr ctrl.Manager, freed handler.EventHandler) error {
	b := newController(mgr, "multizone", 1).
		For(&kumav1alpha1.MeshMultiZoneService{}).
		Watches(&kumav1alpha1.MeshMultiZoneService{}, freed).
		Watches(&kumav1alpha1.MeshService{}, freed).
		Watches(&kumav1alpha1.MeshService{}, handler.EnqueueRequestsFromMapFunc(s.multiZoneServicesOf), builder.WithPredicates(specChanged)).
		Watches(&kumav1alpha1.HostnameGenerator{}, handler.EnqueueRequestsFromMapFunc(s.enqueueAll(&kumav1alpha1.MeshMultiZoneServiceList{})))
	return complete(b, "MeshMultiZoneServices", s.reconcileMultiZone)
}

// multiZoneServicesOf returns the MeshMultiZoneServices that select a MeshService.
func (s *statuses) multiZoneServicesOf(ctx context.Context, service client.Object) []reconcile.Request {
	return requests(ctx, s.cache, &kumav1alpha1.MeshMultiZoneServiceList{}, func(object client.Object) bool {
		multiZone, ok := object.(*kumav1alpha1.MeshMultiZoneService)
		return ok && multiZone.Spec.Selector.MeshService.Matches(desired.LabelsOf(service, s.ZoneInfo))
	}, client.MatchingFields{byMesh: desired.MeshOf(service)})
}

// reconcileMultiZone writes the status of a MeshMultiZoneService.
func (s *statuses) reconcileMultiZone(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s.allocating.Lock()
	defer s.allocating.Unlock()
	var there kumav1alpha1.MeshMultiZoneService
	if err := s.client.Get(ctx, request.NamespacedName, &there); err != nil || there.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := there.DeepCopy()
	now.Status.ObservedGeneration = there.Generation
	var services kumav1alpha1.MeshServiceList
	if err := s.cache.List(ctx, &services, client.MatchingFields{byMesh: desired.MeshOf(&there)}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, err
	}
	now.Status.MeshServices = nil
	for i := range services.Items {
		one := &services.Items[i]
		if !there.Spec.Selector.MeshService.Matches(desired.LabelsOf(one, s.ZoneInfo)) {
			continue
		}
		id := desired.IdentityOf(one, s.ZoneInfo)
		now.Status.MeshServices = append(now.Status.MeshServices, kumav1alpha1.MatchedMeshService{
			Name: id.Name, Namespace: id.Namespace, Zone: id.Zone, Mesh: desired.MeshOf(one),
		})
	}
	slices.SortFunc(now.Status.MeshServices, func(a, b kumav1alpha1.MatchedMeshService) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if err := s.allocateVIP(ctx, now); err != nil {
		return reconcile.Result{}, err
	}
	if err := s.assignHostnames(ctx, now); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, applyStatus(ctx, s.client, &there, there.Status, now.Status, now.Status)
}
