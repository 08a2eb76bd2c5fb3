package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// setupStatuses adds the controller of the status of MeshServices and MeshMultiZoneServices. A request is for both services of
// the name. There is one worker, since VIPs and hostnames are allocated one at a time.
func (r *reconciler) setupStatuses(mgr ctrl.Manager) error {
	freed := handler.Funcs{
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.enqueueWaiting(ctx, e.Object, nil, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			r.enqueueWaiting(ctx, e.ObjectOld, e.ObjectNew, q)
			if !slices.Equal(vipIndex(e.ObjectOld), vipIndex(e.ObjectNew)) || !slices.Equal(hostnameIndex(e.ObjectOld), hostnameIndex(e.ObjectNew)) {
				r.enqueueDuplicates(ctx, e.ObjectNew, q)
			}
		},
	}
	b := newController(mgr, "statuses", 1).
		For(&kumav1alpha1.MeshService{}).
		Watches(&kumav1alpha1.MeshMultiZoneService{}, &handler.EnqueueRequestForObject{}).
		Watches(&kumav1alpha1.MeshService{}, freed).
		Watches(&kumav1alpha1.MeshMultiZoneService{}, freed).
		WatchesRawSource(source.Channel(r.refused, handler.Funcs{GenericFunc: r.enqueueNext})).
		Watches(&kumav1alpha1.MeshService{}, handler.EnqueueRequestsFromMapFunc(r.multiZoneServicesOf), builder.WithPredicates(specChanged)).
		Watches(&kumav1alpha1.Dataplane{}, kube.EnqueueAfter(statusDebounce, r.meshServicesSelecting)).
		Watches(&kumav1alpha1.HostnameGenerator{}, handler.EnqueueRequestsFromMapFunc(r.allServices))
	if !r.IsUniversal() {
		b = b.Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.meshServicesOf)).
			WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.allServices), builder.WithPredicates(rulesChanged))
	}
	if r.Connections != nil {
		b = b.WatchesRawSource(source.Func(r.watchConnections))
	}
	return r.complete(b, "MeshServices", r.reconcileStatuses)
}

func (r *reconciler) reconcileStatuses(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	service, multiZone := r.reconcileMeshService(ctx, request.NamespacedName), r.reconcileMultiZone(ctx, request.NamespacedName)
	// A conflict is retried without a word, and must not hide why the other one fails.
	switch {
	case apierrors.IsConflict(service) && multiZone != nil:
		return reconcile.Result{}, multiZone
	case apierrors.IsConflict(multiZone) && service != nil:
		return reconcile.Result{}, service
	}
	return reconcile.Result{}, errors.Join(service, multiZone)
}

// reconcileMeshService writes the status of a MeshService.
func (r *reconciler) reconcileMeshService(ctx context.Context, key client.ObjectKey) error {
	var service kumav1alpha1.MeshService
	if err := r.client.Get(ctx, key, &service); err != nil || service.DeletionTimestamp != nil {
		return client.IgnoreNotFound(err)
	}
	now := service.DeepCopy()
	now.Status.ObservedGeneration = service.Generation
	if desired.IdentityOf(now, r.ZoneInfo).Local {
		// Another zone counts its own.
		dataplanes, err := r.selectedDataplanes(ctx, now)
		if err != nil {
			return err
		}
		if err := r.countProxies(ctx, now, dataplanes); err != nil {
			return err
		}
	}
	addresses, own, err := r.clusterIPs(ctx, now)
	switch {
	case err != nil:
		return err
	case own:
		setVIPs(now, addresses...)
	default:
		if err := r.allocateVIP(ctx, now); err != nil {
			return err
		}
	}
	if err := r.assignHostnames(ctx, now); err != nil {
		return err
	}
	desired.SetColumns(now.ServiceStatus(), nil)
	return r.letNextTry(&service, now, applyStatus(ctx, r.client, &service, service.Status, now.Status, now.Status))
}

// reconcileMultiZone writes the status of a MeshMultiZoneService.
func (r *reconciler) reconcileMultiZone(ctx context.Context, key client.ObjectKey) error {
	var there kumav1alpha1.MeshMultiZoneService
	if err := r.client.Get(ctx, key, &there); err != nil || there.DeletionTimestamp != nil {
		return client.IgnoreNotFound(err)
	}
	now := there.DeepCopy()
	now.Status.ObservedGeneration = there.Generation
	var services kumav1alpha1.MeshServiceList
	if err := r.cache.List(ctx, &services, client.MatchingFields{byMesh: desired.MeshOf(&there)}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	now.Status.MeshServices = nil
	for i := range services.Items {
		one := &services.Items[i]
		if !there.Spec.Selector.MeshService.Matches(desired.LabelsOf(one, r.ZoneInfo)) {
			continue
		}
		id := desired.IdentityOf(one, r.ZoneInfo)
		now.Status.MeshServices = append(now.Status.MeshServices, kumav1alpha1.MatchedMeshService{
			Name: id.Name, Namespace: id.Namespace, Zone: id.Zone, Mesh: desired.MeshOf(one),
		})
	}
	slices.SortFunc(now.Status.MeshServices, func(a, b kumav1alpha1.MatchedMeshService) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var zones []string
	for _, service := range now.Status.MeshServices {
		zones = append(zones, service.Zone)
	}
	boundMatched(now)
	if err := r.allocateVIP(ctx, now); err != nil {
		return err
	}
	if err := r.assignHostnames(ctx, now); err != nil {
		return err
	}
	desired.SetColumns(now.ServiceStatus(), zones)
	return r.letNextTry(&there, now, applyStatus(ctx, r.client, &there, there.Status, now.Status, now.Status))
}

// maxMatched bounds the MeshServices in the status of a MeshMultiZoneService.
const maxMatched = 250

// boundMatched keeps the first MeshServices of a status, and says how many there are.
func boundMatched(multiZone *kumav1alpha1.MeshMultiZoneService) {
	matched := len(multiZone.Status.MeshServices)
	if matched <= maxMatched {
		meta.RemoveStatusCondition(&multiZone.Status.Conditions, kumav1alpha1.ConditionResolved)
		return
	}
	multiZone.Status.MeshServices = multiZone.Status.MeshServices[:maxMatched]
	setCondition(multiZone, kumav1alpha1.ConditionResolved, metav1.ConditionTrue, kumav1alpha1.ReasonTruncated,
		fmt.Sprintf("the selector matches %d MeshServices, of which status.meshServices lists the first %d; calls go to all of them", matched, maxMatched))
}

// countProxies counts the proxies of a MeshService, and reports port conflicts.
func (r *reconciler) countProxies(ctx context.Context, service *kumav1alpha1.MeshService, dataplanes []*kumav1alpha1.Dataplane) error {
	proxies := kumav1alpha1.DataplaneProxies{}
	others := false
	for _, dataplane := range dataplanes {
		rules, err := r.rulesOf(ctx, dataplane.Namespace)
		if err != nil {
			return err
		}
		serves, healthy, foreign := desired.Serves(service, dataplane, rules, r.ZoneInfo)
		others = others || foreign
		if !serves {
			continue
		}
		proxies.Total++
		if healthy {
			proxies.Healthy++
		}
		if r.Connections != nil && r.Connections.Connection(desired.ProxyOf(dataplane, r.ZoneInfo)).Connected {
			proxies.Connected++
		}
	}
	service.Status.DataplaneProxies = proxies
	if others {
		setCondition(service, kumav1alpha1.ConditionResolved, metav1.ConditionFalse, kumav1alpha1.ReasonOtherNamespaces, desired.ForeignInstancesText(r.ZoneInfo))
	} else {
		meta.RemoveStatusCondition(&service.Status.Conditions, kumav1alpha1.ConditionResolved)
	}
	if !r.IsUniversal() || !desired.IsGenerated(service, r.ZoneInfo) {
		meta.RemoveStatusCondition(&service.Status.Conditions, kumav1alpha1.ConditionPortsAgree)
		return nil
	}
	if _, conflict := desired.UniversalPorts(service.Spec.Selector.DataplaneTags[kumav1alpha1.TagService], dataplanes); conflict != "" {
		setCondition(service, kumav1alpha1.ConditionPortsAgree, metav1.ConditionFalse, kumav1alpha1.ReasonPortConflict, conflict)
		return nil
	}
	setCondition(service, kumav1alpha1.ConditionPortsAgree, metav1.ConditionTrue, kumav1alpha1.ReasonPortsAgree, "all Dataplanes serve the same ports")
	return nil
}

// meshServicesSelecting returns the MeshServices that a Dataplane serves.
func (r *reconciler) meshServicesSelecting(ctx context.Context, dataplane client.Object) []reconcile.Request {
	var all []reconcile.Request
	for _, pair := range tagIndex(dataplane) {
		all = append(all, r.requests(ctx, &kumav1alpha1.MeshServiceList{}, client.MatchingFields{bySelector: pair})...)
	}
	return all
}

// multiZoneServicesOf returns the MeshMultiZoneServices that select a MeshService.
func (r *reconciler) multiZoneServicesOf(ctx context.Context, service client.Object) []reconcile.Request {
	labels := desired.LabelsOf(service, r.ZoneInfo)
	return kube.RequestsMatching(ctx, r.cache, &kumav1alpha1.MeshMultiZoneServiceList{}, func(multiZone *kumav1alpha1.MeshMultiZoneService) bool {
		return multiZone.Spec.Selector.MeshService.Matches(labels)
	}, client.MatchingFields{byMesh: desired.MeshOf(service)})
}

// meshServicesOf returns the MeshServices with the addresses of a Service.
func (r *reconciler) meshServicesOf(ctx context.Context, service client.Object) []reconcile.Request {
	owned := []client.ListOption{client.InNamespace(service.GetNamespace()), client.MatchingFields{byOwner: service.GetName()}}
	return append(r.requests(ctx, &kumav1alpha1.MeshServiceList{}, owned...), request(service))
}

// allServices returns all MeshServices and MeshMultiZoneServices.
func (r *reconciler) allServices(ctx context.Context, _ client.Object) []reconcile.Request {
	return append(r.requests(ctx, &kumav1alpha1.MeshServiceList{}), r.requests(ctx, &kumav1alpha1.MeshMultiZoneServiceList{})...)
}

// enqueueWaiting enqueues services that wait for what a service no longer has: as many as there are free VIPs, and all that may
// wait for its hostnames. One that no longer waits lets the next one try, since what was free for it may still be. The service
// after the change is nil once it is deleted.
func (r *reconciler) enqueueWaiting(ctx context.Context, before, after client.Object, q queue) {
	lost := func(of func(client.Object) []string) []string {
		var kept []string
		if after != nil {
			kept = of(after)
		}
		return slices.DeleteFunc(of(before), func(value string) bool { return slices.Contains(kept, value) })
	}
	most := map[string]int{}
	for _, waited := range lost(waitingIndex) {
		most[waited] = 1
	}
	if freed := len(lost(r.allocatedVIPs)); freed > 0 {
		most[waitsForRange], most[waitsForShare(before.GetNamespace())] = freed, freed
	}
	hostnames := waitsForHostname(desired.MeshOf(before))
	delete(most, hostnames)
	if len(lost(hostnameIndex)) > 0 {
		r.enqueueIndexed(ctx, before, byWaiting, hostnames, q, math.MaxInt)
	}
	for waiting, count := range most {
		r.enqueueIndexed(ctx, before, byWaiting, waiting, q, count)
	}
}

// letNextTry has another service enqueued that waits for the VIP which a service could not take, because its status was refused.
func (r *reconciler) letNextTry(before, now addressable, err error) error {
	if err != nil && !apierrors.IsConflict(err) && len(r.allocatedVIPs(before)) == 0 && len(r.allocatedVIPs(now)) > 0 {
		r.refused <- event.GenericEvent{Object: before}
	}
	return err
}

// enqueueNext enqueues what waits for a VIP that a service could not take. The status of the next one may be refused too, so each is
// tried at the rate of one that fails.
func (r *reconciler) enqueueNext(ctx context.Context, e event.GenericEvent, q queue) {
	for _, waiting := range []string{waitsForRange, waitsForShare(e.Object.GetNamespace())} {
		r.enqueueIndexed(ctx, e.Object, byWaiting, waiting, rateLimited{q}, 1)
	}
}

// rateLimited is a queue to which all is added as after a failure.
type rateLimited struct{ queue }

func (q rateLimited) Add(request reconcile.Request) { q.AddRateLimited(request) }

// enqueueDuplicates enqueues services with the same VIP or hostname.
func (r *reconciler) enqueueDuplicates(ctx context.Context, given client.Object, q queue) {
	for _, vip := range vipIndex(given) {
		r.enqueueIndexed(ctx, given, byVIP, vip, q, math.MaxInt)
	}
	for _, hostname := range hostnameIndex(given) {
		r.enqueueIndexed(ctx, given, byHostname, hostname, q, math.MaxInt)
	}
}

// enqueueIndexed enqueues at most so many of the other services that an index has under a key.
func (r *reconciler) enqueueIndexed(ctx context.Context, object client.Object, index, key string, q queue, most int) {
	others, err := othersIndexed(ctx, r.cache, object, index, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list services to reconcile", "index", index)
	}
	// No kind and no name comes first every time.
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for _, other := range others[:min(len(others), most)] {
		q.Add(request(other))
	}
}

// watchConnections enqueues the MeshServices of proxies that connect or disconnect.
func (r *reconciler) watchConnections(ctx context.Context, q queue) error {
	there := connectionTracker{connected: map[model.ProxyID]bool{}}
	r.Connections.OnChange(func(id model.ProxyID) {
		if !there.changed(id, func() bool { return r.Connections.Connection(id).Connected }) {
			return
		}
		var list kumav1alpha1.DataplaneList
		if err := r.cache.List(ctx, &list, client.MatchingFields{byProxy: id.String()}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the Dataplanes of a proxy", "proxy", id.String())
		}
		for i := range list.Items {
			for _, request := range r.meshServicesSelecting(ctx, &list.Items[i]) {
				q.AddAfter(request, statusDebounce)
			}
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
