// Package tag keeps an IstioRevisionTag: a stable name whose webhook leads to a revision, or to whichever revision of
// an Istio is the active one.
package tag

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/controlplane"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// +kubebuilder:rbac:groups=sailoperator.io,resources=istiorevisiontags,verbs=list;watch;patch
// +kubebuilder:rbac:groups=sailoperator.io,resources=istiorevisiontags/status,verbs=patch

// Setup adds the controller of IstioRevisionTags to the manager.
func Setup(mgr ctrl.Manager, tools controlplane.Tools) error {
	r := &reconciler{
		client:   tools.Client,
		cache:    mgr.GetCache(),
		objects:  tools.Objects,
		releases: tools.Releases,
		charts:   tools.Charts,
		users:    tools.Users,
		recorder: mgr.GetEventRecorder("fairlead.dev/" + v1.PassageRevision),
		now:      time.Now,
	}
	changed := builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
	b := ctrl.NewControllerManagedBy(mgr).
		Named("istiorevisiontag").
		WithLogConstructor(installer.Logger(mgr, v1.IstioRevisionTagKind)).
		For(&v1.IstioRevisionTag{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, installer.Deleting,
		))).
		Watches(&v1.Istio{}, handler.EnqueueRequestsFromMapFunc(r.requestsForIstio), changed).
		Watches(&v1.IstioRevision{}, handler.EnqueueRequestsFromMapFunc(r.requestsForRevision), changed).
		WatchesRawSource(tools.Users.Source()).
		WatchesRawSource(tools.Users.WatchErrorSource(r.requestsForAll))
	return tools.Objects.Watch(b, installer.Watch{
		Kind:          v1.IstioRevisionTagKind,
		ReleaseSuffix: releaseSuffix,
		Namespace:     r.requestsInNamespace,
	}).Complete(r)
}

type reconciler struct {
	client   client.Client
	cache    client.Reader
	objects  *installer.Objects
	releases *installer.ReleaseClient
	charts   *installer.Charts
	users    *usage.Tracker
	recorder events.EventRecorder
	now      func() time.Time
}

// Reconcile observes, plans, applies and reports one IstioRevisionTag.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	observed, err := r.observe(ctx, request.Name)
	if err != nil {
		// Users of a name without a tag do not matter.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	plan := Plan(observed)
	decision := passage.Next(plan, passage.Batching{}, r.now())
	applyErr := r.apply(ctx, observed, decision.Start)
	if apierrors.IsConflict(applyErr) {
		return ctrl.Result{RequeueAfter: kube.ConflictRequeueDelay}, nil
	}
	if len(decision.Start) > 0 && applyErr == nil {
		if observed, err = r.observe(ctx, request.Name); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		plan = Plan(observed)
	}
	if observed.beingDeleted() && applyErr == nil && len(plan.Steps) == 0 {
		err := installer.RemoveFinalizer(ctx, r.client, observed.Tag)
		if err != nil || len(observed.Tag.Finalizers) == 0 {
			return ctrl.Result{}, err
		}
		plan = Plan(observed)
	}
	if err := r.report(ctx, observed, plan, applyErr); err != nil {
		return installer.StatusError(applyErr, err)
	}
	result, err := installer.Result(plan, applyErr, r.charts.RetryInterval())
	if err == nil && !observed.Usage.Known() {
		result = installer.RequeueUnknownUsage(result)
	}
	return result, err
}

func (r *reconciler) requestsForIstio(ctx context.Context, istio client.Object) []ctrl.Request {
	return r.requestsMatching(ctx, func(tag *v1.IstioRevisionTag) bool { return follows(tag, istio.GetName()) })
}

// requestsForRevision enqueues the tags that point to a revision, should point to it, or want its name.
func (r *reconciler) requestsForRevision(ctx context.Context, revision client.Object) []ctrl.Request {
	name, owner := revision.GetName(), metav1.GetControllerOf(revision)
	return r.requestsMatching(ctx, func(tag *v1.IstioRevisionTag) bool {
		ref := tag.Spec.TargetRef
		return tag.Name == name || tag.Status.IstioRevision == name ||
			ref.Kind == v1.IstioRevisionKind && ref.Name == name ||
			owner != nil && follows(tag, owner.Name)
	})
}

// requestsForAll are the requests for every tag.
func (r *reconciler) requestsForAll(ctx context.Context) []ctrl.Request {
	return r.requestsMatching(ctx, func(*v1.IstioRevisionTag) bool { return true })
}

// requestsInNamespace are the tags that point into a namespace.
func (r *reconciler) requestsInNamespace(ctx context.Context, namespace string) []ctrl.Request {
	return r.requestsMatching(ctx, func(tag *v1.IstioRevisionTag) bool { return tag.Status.IstiodNamespace == namespace })
}

func follows(tag *v1.IstioRevisionTag, istio string) bool {
	return tag.Spec.TargetRef.Kind == v1.IstioKind && tag.Spec.TargetRef.Name == istio
}

func (r *reconciler) requestsMatching(ctx context.Context, match func(*v1.IstioRevisionTag) bool) []ctrl.Request {
	var list v1.IstioRevisionTagList
	if err := r.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list IstioRevisionTags to enqueue")
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if match(&list.Items[i]) {
			requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}})
		}
	}
	return requests
}
