package generate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// annotationGone is, on a ConfigMap of tags, since when nothing serves those that are kept for the grace.
const annotationGone = "fairlead.dev/gone-since"

// TagsName is the name of the ConfigMap, in the system namespace, that holds the address of each value of kuma.io/service of
// a mesh.
func TagsName(mesh string) string { return "fairlead-mesh-" + mesh + "-tags" }

// setupTags adds the controller that gives an address to each value of kuma.io/service of a mesh.
func (r *reconciler) setupTags(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("meshservice-tags").WithOptions(options(1)).
		For(&kumav1alpha1.Mesh{}, builder.WithPredicates(specChanged)).
		Watches(&kumav1alpha1.Dataplane{}, r.enqueueTagChanges(r.dataplaneTags)).
		Watches(&kumav1alpha1.ZoneIngress{}, r.enqueueTagChanges(r.ingressTags)).
		WatchesRawSource(source.Kind(r.workloads, &corev1.ConfigMap{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, record *corev1.ConfigMap) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: desired.MeshOf(record)}}}
			}))).
		Complete(requeueOnConflict{reconcile.Func(r.reconcileTags)})
	if err != nil {
		return fmt.Errorf("watch Dataplanes and ZoneIngresses: %w", err)
	}
	return nil
}

// tag is a value of kuma.io/service in a mesh.
type tag struct{ mesh, service string }

func (r *reconciler) dataplaneTags(object client.Object) []tag {
	dataplane, ok := object.(*kumav1alpha1.Dataplane)
	if !ok {
		return nil
	}
	var all []tag
	for _, service := range desired.ServicesOf(dataplane, r.ZoneInfo) {
		all = append(all, tag{desired.MeshOf(dataplane), service})
	}
	return all
}

func (r *reconciler) ingressTags(object client.Object) []tag {
	ingress, ok := object.(*kumav1alpha1.ZoneIngress)
	if !ok || !desired.IsTrusted(ingress, r.ZoneInfo) {
		return nil
	}
	var all []tag
	for _, available := range ingress.Spec.AvailableServices {
		if service := available.Tags[kumav1alpha1.TagService]; service != "" {
			mesh := available.Mesh
			if mesh == "" {
				mesh = kumav1alpha1.DefaultMesh
			}
			all = append(all, tag{mesh, service})
		}
	}
	return all
}

// enqueueTagChanges wakes the meshes in which an object changes what tags there are.
func (r *reconciler) enqueueTagChanges(of func(client.Object) []tag) handler.EventHandler {
	wake := func(ctx context.Context, tags []tag, known func(context.Context, tag) bool, q queue) {
		for _, t := range tags {
			if !known(ctx, t) {
				q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: t.mesh}}, tagDebounce)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(ctx, of(e.Object), r.hasAddress, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, of(e.Object), r.isServed, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if before, now := of(e.ObjectOld), of(e.ObjectNew); !slices.Equal(before, now) {
				wake(ctx, before, r.isServed, q)
				wake(ctx, now, r.hasAddress, q)
			}
		},
	}
}

// hasAddress says whether a value has its address, and is not about to lose it: another pod of a service is then no news.
func (r *reconciler) hasAddress(ctx context.Context, t tag) bool {
	var record corev1.ConfigMap
	err := r.workloads.Get(ctx, client.ObjectKey{Namespace: r.SystemNamespace, Name: TagsName(t.mesh)}, &record, client.UnsafeDisableDeepCopy)
	return err == nil && record.Data[t.service] != "" && record.Annotations[annotationGone] == ""
}

// isServed says whether a value is served by what is left.
func (r *reconciler) isServed(ctx context.Context, t tag) bool {
	left, err := r.dataplanesWith(ctx, pair(t.mesh, kumav1alpha1.TagService, t.service))
	return err == nil && slices.ContainsFunc(left, func(d *kumav1alpha1.Dataplane) bool {
		return slices.Contains(desired.ServicesOf(d, r.ZoneInfo), t.service)
	})
}

// reconcileTags gives each value of kuma.io/service of a mesh its address.
func (r *reconciler) reconcileTags(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var mesh kumav1alpha1.Mesh
	if err := r.client.Get(ctx, request.NamespacedName, &mesh); err != nil || mesh.DeletionTimestamp != nil {
		// Its record is collected.
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	wanted, err := r.servedTags(ctx, mesh.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	// The record is read where it is sure to be the last: an address must never be given twice.
	record := &corev1.ConfigMap{}
	err = r.live.Get(ctx, client.ObjectKey{Namespace: r.SystemNamespace, Name: TagsName(mesh.Name)}, record)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	outcome := readTags(record).Allocate(wanted, r.Ranges.Tags, r.Grace, r.now())
	condition := tagsCondition(outcome, r.Ranges)
	switch err := r.applyTags(ctx, &mesh, record, outcome.Tags); {
	case apierrors.IsNotFound(err):
		condition.Status, condition.Reason = metav1.ConditionFalse, ReasonNoNamespace
		condition.Message = fmt.Sprintf("namespace %s, in which VIPs are recorded, does not exist: create the namespace, or set another one with --mesh-namespace", r.SystemNamespace)
		outcome.RequeueAfter = namespaceRetryDelay
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("record the addresses of Mesh %s: %w", mesh.Name, err)
	}
	err = r.patchMeshStatus(ctx, &mesh, condition, func(*kumav1alpha1.MeshStatus) {})
	return reconcile.Result{RequeueAfter: outcome.RequeueAfter}, err
}

// servedTags are the values of kuma.io/service that are served in a mesh, here and in other zones.
func (r *reconciler) servedTags(ctx context.Context, mesh string) ([]string, error) {
	var dataplanes kumav1alpha1.DataplaneList
	if err := r.cache.List(ctx, &dataplanes, client.MatchingFields{byMesh: mesh}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var ingresses kumav1alpha1.ZoneIngressList
	if err := r.cache.List(ctx, &ingresses, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var all []string
	for i := range dataplanes.Items {
		all = append(all, desired.ServicesOf(&dataplanes.Items[i], r.ZoneInfo)...)
	}
	for i := range ingresses.Items {
		for _, t := range r.ingressTags(&ingresses.Items[i]) {
			if t.mesh == mesh {
				all = append(all, t.service)
			}
		}
	}
	return all, nil
}

func readTags(record *corev1.ConfigMap) desired.Tags {
	tags := desired.Tags{VIPs: record.Data}
	// What cannot be read begins anew: the grace is then longer, and nothing else.
	_ = json.Unmarshal([]byte(record.Annotations[annotationGone]), &tags.UnservedSince)
	return tags
}

// applyTags writes the addresses down, if they differ from what is there.
func (r *reconciler) applyTags(ctx context.Context, mesh *kumav1alpha1.Mesh, there *corev1.ConfigMap, tags desired.Tags) error {
	now := there.DeepCopy()
	now.Namespace, now.Name, now.Data, now.BinaryData = r.SystemNamespace, TagsName(mesh.Name), tags.VIPs, nil
	if now.Labels == nil {
		now.Labels = map[string]string{}
	}
	now.Labels[kumav1alpha1.LabelMesh], now.Labels[kumav1alpha1.LabelManagedBy] = mesh.Name, kumav1alpha1.ManagedBy
	now.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: kumav1alpha1.GroupVersion.String(), Kind: kumav1alpha1.MeshKind, Name: mesh.Name, UID: mesh.UID,
		Controller: ptr.To(true),
	}}
	if now.Annotations == nil {
		now.Annotations = map[string]string{}
	}
	// Who plans without being the operator must reckon with the same.
	now.Annotations[kumav1alpha1.AnnotationZone], now.Annotations[kumav1alpha1.AnnotationEnvironment] = r.Zone, r.Environment
	now.Annotations[kumav1alpha1.AnnotationServiceCIDR] = r.Ranges.Services.String()
	delete(now.Annotations, annotationGone)
	if len(tags.UnservedSince) > 0 {
		text, err := json.Marshal(tags.UnservedSince)
		if err != nil {
			return err
		}
		now.Annotations[annotationGone] = string(text)
	}
	if there.UID != "" {
		if desired.Equal(there, now) {
			return nil
		}
		return r.records.Update(ctx, now, client.FieldOwner(FieldOwner))
	}
	return r.records.Create(ctx, now, client.FieldOwner(FieldOwner))
}

// tagsCondition tells whether all values have their address.
func tagsCondition(outcome desired.Allocation, ranges desired.Ranges) metav1.Condition {
	switch {
	case len(outcome.Unallocated) > 0:
		return metav1.Condition{
			Type: kumav1alpha1.ConditionVIPs, Status: metav1.ConditionFalse, Reason: kumav1alpha1.ReasonRangeExhausted,
			Message: fmt.Sprintf("%s has no free address: %s of kuma.io/service without a VIP: %s; set a wider --mesh-tag-cidr (chart: mesh.tagCIDR), or remove unused values",
				ranges.Tags, countText(len(outcome.Unallocated), "value"), namesText(outcome.Unallocated)),
		}
	case len(outcome.Invalid) > 0:
		return metav1.Condition{
			Type: kumav1alpha1.ConditionVIPs, Status: metav1.ConditionFalse, Reason: ReasonInvalidValue,
			Message: fmt.Sprintf("%s of kuma.io/service not valid, so without a VIP: %s; use letters, digits, '-', '_' and '.' only",
				countText(len(outcome.Invalid), "value"), namesText(outcome.Invalid)),
		}
	default:
		return metav1.Condition{
			Type: kumav1alpha1.ConditionVIPs, Status: metav1.ConditionTrue, Reason: kumav1alpha1.ReasonAllocated,
			Message: "every value of kuma.io/service has a VIP",
		}
	}
}

// Reasons of VIPs on a Mesh: values that cannot be recorded, and no place to record any.
const (
	ReasonInvalidValue = "InvalidValue"
	ReasonNoNamespace  = "NoNamespace"
)

// namespaceRetryDelay is how soon a namespace that is not there is looked for again.
const namespaceRetryDelay = 2 * time.Second

func countText(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// namesText names as many as can be read.
func namesText(names []string) string {
	const enough = 5
	if len(names) <= enough {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enough], ", "), len(names)-enough)
}
