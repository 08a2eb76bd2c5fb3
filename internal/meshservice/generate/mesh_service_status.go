package generate

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
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
	b := newController(mgr, "statuses", 1).
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
	if err := complete(b, "MeshServices", s.reconcile); err != nil {
		return err
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
	return reconcile.Result{}, applyStatus(ctx, s.client, &service, service.Status, now.Status, now.Status)
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
		for _, request := range requests(ctx, s.cache, &kumav1alpha1.MeshServiceList{}, nil, client.MatchingFields{bySelector: pair}) {
			q.AddAfter(request, statusDebounce)
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
	other := func(other client.Object) bool { return other.GetUID() != object.GetUID() }
	for _, list := range []client.ObjectList{&kumav1alpha1.MeshServiceList{}, &kumav1alpha1.MeshMultiZoneServiceList{}} {
		for _, request := range requests(ctx, s.cache, list, other, client.MatchingFields{index: key}) {
			q.Add(request)
		}
	}
}

// enqueueAll returns all objects of a kind.
func (s *statuses) enqueueAll(kind client.ObjectList) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		return requests(ctx, s.cache, kind.DeepCopyObject().(client.ObjectList), nil)
	}
}

// meshServicesOf returns the MeshServices with the addresses of a Service.
func (s *statuses) meshServicesOf(ctx context.Context, service client.Object) []reconcile.Request {
	owned := []client.ListOption{client.InNamespace(service.GetNamespace()), client.MatchingFields{byOwner: service.GetName()}}
	return append(requests(ctx, s.cache, &kumav1alpha1.MeshServiceList{}, nil, owned...), request(service))
}

// watchConnections enqueues the MeshServices of proxies that connect or disconnect.
func (s *statuses) watchConnections(ctx context.Context, q queue) error {
	there := connectionTracker{connected: map[model.ProxyID]bool{}}
	s.Connections.OnChange(func(id model.ProxyID) {
		if !there.changed(id, func() bool { return s.Connections.Connection(id).Connected }) {
			return
		}
		var list kumav1alpha1.DataplaneList
		if err := s.cache.List(ctx, &list, client.MatchingFields{byProxy: id.String()}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the Dataplanes of a proxy", "proxy", id.String())
		}
		for i := range list.Items {
			s.enqueueServices(ctx, &list.Items[i], q)
		}
	})
	return nil
}

// connectionTracker filters out changes other than connects and disconnects.
type connectionTracker struct {
	mu        sync.Mutex
	connected map[model.ProxyID]bool
}

// changed says whether a proxy has connected or disconnected. A disconnect always counts, since the connect may have been
// missed.
func (p *connectionTracker) changed(id model.ProxyID, connected func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.connected[id]
	if !connected() {
		delete(p.connected, id)
		return true
	}
	p.connected[id] = true
	return !before
}
