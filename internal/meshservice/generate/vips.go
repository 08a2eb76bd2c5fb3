package generate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/meshstatus"
)

// annotationGone is, on the ConfigMap of VIPs, since when values without a Dataplane are kept.
const annotationGone = "fairlead.dev/gone-since"

// setupVIPs adds the controller of VIPs of kuma.io/service values.
func (r *reconciler) setupVIPs(mgr ctrl.Manager) error {
	b := newController(mgr, "tags", 1).
		For(&kumav1alpha1.Mesh{}, builder.WithPredicates(specChanged)).
		Watches(&kumav1alpha1.Dataplane{}, r.enqueueTagChanges(r.servicesOfDataplane)).
		Watches(&kumav1alpha1.ZoneIngress{}, r.enqueueTagChanges(r.ingressTags)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(meshOf))
	if !r.IsUniversal() {
		b = b.WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.allMeshes), builder.WithPredicates(rulesChanged))
	}
	return r.complete(b, "Dataplanes and ZoneIngresses", r.reconcileVIPs)
}

// ingressTags returns the values of kuma.io/service behind a ZoneIngress, as servicesOfDataplane does.
func (r *reconciler) ingressTags(_ context.Context, object client.Object) []reconcile.Request {
	ingress := object.(*kumav1alpha1.ZoneIngress)
	if !desired.IsTrusted(ingress, r.ZoneInfo) {
		return nil
	}
	var all []reconcile.Request
	for _, available := range ingress.Spec.AvailableServices {
		if service := available.Tags[kumav1alpha1.TagService]; service != "" {
			all = append(all, serviceRequest(cmp.Or(available.Mesh, kumav1alpha1.DefaultMesh), service))
		}
	}
	return all
}

// enqueueTagChanges enqueues the meshes whose set of tags an object changes.
func (r *reconciler) enqueueTagChanges(of handler.MapFunc) handler.EventHandler {
	wake := func(ctx context.Context, tags []reconcile.Request, known func(ctx context.Context, mesh, service string) bool, q queue) {
		for _, t := range tags {
			if !known(ctx, t.Namespace, t.Name) {
				q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: t.Namespace}}, tagDebounce)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(ctx, of(ctx, e.Object), r.hasVIP, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, of(ctx, e.Object), r.isServed, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if before, now := of(ctx, e.ObjectOld), of(ctx, e.ObjectNew); !slices.Equal(before, now) {
				wake(ctx, before, r.isServed, q)
				wake(ctx, now, r.hasVIP, q)
			}
		},
	}
}

// hasVIP says whether a value has a VIP that is not about to expire: another pod of the service then changes nothing.
func (r *reconciler) hasVIP(ctx context.Context, mesh, service string) bool {
	shards, err := r.vipShards(ctx, r.cache, mesh)
	return err == nil && slices.ContainsFunc(shards, func(shard *corev1.ConfigMap) bool { return shard.Data[service] != "" }) &&
		!slices.ContainsFunc(shards, func(shard *corev1.ConfigMap) bool { return shard.Annotations[annotationGone] != "" })
}

// isServed says whether another Dataplane serves a value.
func (r *reconciler) isServed(ctx context.Context, mesh, service string) bool {
	left, err := r.dataplanesWith(ctx, pair(mesh, kumav1alpha1.TagService, service))
	return err == nil && slices.ContainsFunc(left, func(d *kumav1alpha1.Dataplane) bool {
		rules, err := r.rulesOf(ctx, d.Namespace)
		return err == nil && slices.Contains(desired.ServicesOf(d, rules, r.ZoneInfo), service)
	})
}

// reconcileVIPs allocates a VIP for each value of kuma.io/service of a mesh.
func (r *reconciler) reconcileVIPs(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var mesh kumav1alpha1.Mesh
	if err := r.client.Get(ctx, request.NamespacedName, &mesh); err != nil || mesh.DeletionTimestamp != nil {
		// The garbage collector deletes its ConfigMap.
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	wanted, err := r.servedTags(ctx, mesh.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	// Read from the API server: a VIP must never be allocated twice.
	recorded, err := r.vipShards(ctx, r.live, mesh.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	shards := make([]desired.TagVIPs, len(recorded))
	for i, shard := range recorded {
		shards[i] = readVIPs(shard)
	}
	outcome := desired.MergeShards(shards).Allocate(wanted, r.Ranges.Tags, r.share(r.Ranges.Tags), r.Grace, r.now())
	condition := vipsCondition(outcome, r.Ranges, r.share(r.Ranges.Tags))
	switch err := r.applyVIPs(ctx, &mesh, recorded, outcome.Shards(shards)); {
	case apierrors.IsNotFound(err):
		condition.Status, condition.Reason = metav1.ConditionFalse, ReasonNoNamespace
		condition.Message = fmt.Sprintf("namespace %s, in which VIPs are recorded, does not exist: create the namespace, or set another one with --mesh-namespace", r.SystemNamespace)
		outcome.RequeueAfter = namespaceRetryDelay
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("record the addresses of Mesh %s: %w", mesh.Name, err)
	}
	_, err = meshstatus.Apply(ctx, r.client, &mesh, meshstatus.VIPs, condition, nil)
	return reconcile.Result{RequeueAfter: outcome.RequeueAfter}, client.IgnoreNotFound(err)
}

// share is how many VIPs of a range one namespace may have; 0 is no limit, in universal.
func (r *reconciler) share(from netip.Prefix) int {
	if r.IsUniversal() {
		return 0
	}
	return desired.ShareOf(from, r.NamespaceVIPs)
}

func readVIPs(record *corev1.ConfigMap) desired.TagVIPs {
	tags := desired.TagVIPs{VIPs: record.Data}
	// If malformed, the grace period starts again.
	_ = json.Unmarshal([]byte(record.Annotations[annotationGone]), &tags.UnservedSince)
	return tags
}

// namespaceRetryDelay is the delay until a missing namespace is checked again.
const namespaceRetryDelay = 2 * time.Second
