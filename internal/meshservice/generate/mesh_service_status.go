package generate

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// statuses writes the status of MeshServices and MeshMultiZoneServices. VIPs and hostnames are allocated one at a time.
type statuses struct {
	*reconciler
	allocating sync.Mutex
}

func (r *reconciler) setupStatuses(mgr ctrl.Manager) error {
	s := &statuses{reconciler: r}
	freed := handler.Funcs{
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { s.enqueueUnallocated(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if !slices.Equal(vipIndex(e.ObjectOld), vipIndex(e.ObjectNew)) || !slices.Equal(hostnameIndex(e.ObjectOld), hostnameIndex(e.ObjectNew)) {
				s.enqueueUnallocated(ctx, e.ObjectOld, q)
				s.enqueueDuplicates(ctx, e.ObjectNew, q)
			}
		},
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("meshservice-statuses").WithOptions(options(1)).
		For(&kumav1alpha1.MeshService{}).
		Watches(&kumav1alpha1.MeshService{}, freed).
		Watches(&kumav1alpha1.MeshMultiZoneService{}, freed).
		Watches(&kumav1alpha1.Dataplane{}, enqueueOldAndNew(s.enqueueServices)).
		Watches(&kumav1alpha1.HostnameGenerator{}, handler.EnqueueRequestsFromMapFunc(s.enqueueAll(&kumav1alpha1.MeshServiceList{})))
	if !r.IsUniversal() {
		b = b.Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(s.meshServicesOf))
	}
	if r.Connections != nil {
		b = b.WatchesRawSource(source.Func(s.watchConnections))
	}
	if err := b.Complete(kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: reconcile.Func(s.reconcile)}); err != nil {
		return fmt.Errorf("watch MeshServices: %w", err)
	}
	return s.setupMultiZone(mgr, freed)
}

// reconcile writes the status of a MeshService.
func (s *statuses) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s.allocating.Lock()
	defer s.allocating.Unlock()
	var service kumav1alpha1.MeshService
	if err := s.client.Get(ctx, request.NamespacedName, &service); err != nil || service.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := service.DeepCopy()
	now.Status.ObservedGeneration = service.Generation
	if desired.IdentityOf(now, s.ZoneInfo).Local {
		// Another zone counts its own.
		dataplanes, err := s.selectedDataplanes(ctx, now)
		if err != nil {
			return reconcile.Result{}, err
		}
		s.countProxies(now, dataplanes)
	}
	addresses, own, err := s.clusterIPs(ctx, now)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case own:
		s.setVIPs(now, addresses...)
	default:
		if err := s.allocateVIP(ctx, now); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := s.assignHostnames(ctx, now); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, applyStatus(ctx, s.client, kumav1alpha1.MeshServiceKind, &service, service.Status, now.Status, now.Status)
}

// countProxies counts the proxies of a MeshService, and reports port conflicts.
func (s *statuses) countProxies(service *kumav1alpha1.MeshService, dataplanes []*kumav1alpha1.Dataplane) {
	proxies := kumav1alpha1.DataplaneProxies{}
	others := false
	for _, dataplane := range dataplanes {
		others = others || desired.SelectsForeign(service, dataplane, s.ZoneInfo)
		serves, healthy := desired.Serves(service, dataplane, s.ZoneInfo)
		if !serves {
			continue
		}
		proxies.Total++
		if healthy {
			proxies.Healthy++
		}
		if s.Connections != nil && s.Connections.Connection(desired.ProxyOf(dataplane, s.ZoneInfo)).Connected {
			proxies.Connected++
		}
	}
	service.Status.DataplaneProxies = proxies
	if others {
		setCondition(service, kumav1alpha1.ConditionResolved, metav1.ConditionFalse, kumav1alpha1.ReasonOtherNamespaces, desired.ForeignInstancesText(s.ZoneInfo))
	} else {
		meta.RemoveStatusCondition(&service.Status.Conditions, kumav1alpha1.ConditionResolved)
	}
	if !s.IsUniversal() || !desired.IsGenerated(service, s.ZoneInfo) {
		meta.RemoveStatusCondition(&service.Status.Conditions, kumav1alpha1.ConditionPortsAgree)
		return
	}
	if _, conflict := desired.UniversalPorts(service.Spec.Selector.DataplaneTags[kumav1alpha1.TagService], dataplanes); conflict != "" {
		setCondition(service, kumav1alpha1.ConditionPortsAgree, metav1.ConditionFalse, kumav1alpha1.ReasonPortConflict, conflict)
		return
	}
	setCondition(service, kumav1alpha1.ConditionPortsAgree, metav1.ConditionTrue, kumav1alpha1.ReasonPortsAgree, "all Dataplanes serve the same ports")
}

// enqueueServices enqueues the MeshServices that a Dataplane serves.
func (s *statuses) enqueueServices(ctx context.Context, object client.Object, q queue) {
	dataplane, ok := object.(*kumav1alpha1.Dataplane)
	if !ok {
		return
	}
	for _, pair := range tagIndex(dataplane) {
		var list kumav1alpha1.MeshServiceList
		if err := s.cache.List(ctx, &list, client.MatchingFields{bySelector: pair}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the MeshServices of a Dataplane", "dataplane", dataplane.Name)
			return
		}
		for i := range list.Items {
			q.AddAfter(request(&list.Items[i]), statusDebounce)
		}
	}
}

// enqueueUnallocated enqueues services that wait for a VIP or hostname. Each of both controllers handles its own kind.
func (s *statuses) enqueueUnallocated(ctx context.Context, freed client.Object, q queue) {
	if len(vipIndex(freed))+len(hostnameIndex(freed)) == 0 {
		return
	}
	s.enqueueIndexed(ctx, freed, byUnallocated, "yes", q)
}

// enqueueDuplicates enqueues services with the same VIP or hostname.
func (s *statuses) enqueueDuplicates(ctx context.Context, given client.Object, q queue) {
	for _, vip := range vipIndex(given) {
		s.enqueueIndexed(ctx, given, byVIP, vip, q)
	}
	for _, hostname := range hostnameIndex(given) {
		s.enqueueIndexed(ctx, given, byHostname, hostname, q)
	}
}

func (s *statuses) enqueueIndexed(ctx context.Context, object client.Object, index, key string, q queue) {
	lists := []client.ObjectList{&kumav1alpha1.MeshServiceList{}, &kumav1alpha1.MeshMultiZoneServiceList{}}
	for _, list := range lists {
		if err := s.cache.List(ctx, list, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list services with the same VIP or hostname")
			return
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if other, ok := item.(client.Object); ok && other.GetUID() != object.GetUID() {
				q.Add(request(other))
			}
			return nil
		})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list services with the same VIP or hostname")
		}
	}
}

// enqueueAll returns all objects of a kind.
func (s *statuses) enqueueAll(kind client.ObjectList) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		list := kind.DeepCopyObject().(client.ObjectList)
		if err := s.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list services for hostnames")
		}
		var all []reconcile.Request
		_ = meta.EachListItem(list, func(item runtime.Object) error { // never fails
			all = append(all, request(item.(client.Object)))
			return nil
		})
		return all
	}
}

// meshServicesOf returns the MeshServices with the addresses of a Service.
func (s *statuses) meshServicesOf(ctx context.Context, service client.Object) []reconcile.Request {
	all := []reconcile.Request{request(service)}
	var list kumav1alpha1.MeshServiceList
	err := s.cache.List(ctx, &list, client.InNamespace(service.GetNamespace()), client.MatchingFields{byOwner: service.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the MeshServices of a Service", "service", service.GetName())
	}
	for i := range list.Items {
		all = append(all, request(&list.Items[i]))
	}
	return all
}
