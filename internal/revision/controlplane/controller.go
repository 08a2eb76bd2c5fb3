// Package controlplane installs the control plane of an IstioRevision from Istio's charts, keeps it as it was
// installed, tells whether it serves and who uses it, and removes it.
package controlplane

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// workers install several control planes at the same time.
const workers = 4

// Tools are what the controller works with.
type Tools struct {
	// Client reads its own writes.
	Client   client.Client
	Objects  *installer.Objects
	Releases *installer.ReleaseClient
	Charts   *installer.Charts
	Users    *usage.Tracker
}

// +kubebuilder:rbac:groups=sailoperator.io,resources=istiorevisions,verbs=list;watch;patch
// +kubebuilder:rbac:groups=sailoperator.io,resources=istiorevisions/status,verbs=patch

// Setup adds the controller of IstioRevisions to the manager.
func Setup(mgr ctrl.Manager, tools Tools) error {
	r := &reconciler{
		client:   tools.Client,
		cache:    mgr.GetCache(),
		live:     mgr.GetAPIReader(),
		objects:  tools.Objects,
		releases: tools.Releases,
		charts:   tools.Charts,
		users:    tools.Users,
		recorder: mgr.GetEventRecorder("fairlead.dev/" + v1.PassageRevision),
		now:      time.Now,
	}
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []ctrl.Request { return r.requestsForAll(ctx) })
	b := ctrl.NewControllerManagedBy(mgr).
		Named("istiorevision").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		WithLogConstructor(installer.Logger(mgr, v1.IstioRevisionKind)).
		For(&v1.IstioRevision{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, installer.Deleting,
		))).
		// The shared releases are managed by one of the revisions.
		Watches(&v1.IstioRevision{}, all, builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool {
				before, after := e.ObjectOld.(*v1.IstioRevision), e.ObjectNew.(*v1.IstioRevision)
				return before.DeletionTimestamp.IsZero() && !after.DeletionTimestamp.IsZero() ||
					before.Spec.Version != after.Spec.Version || installer.Paused(before) != installer.Paused(after)
			},
		})).
		// A tag may take or release the name of a revision; the tag named default selects the validating revision.
		Watches(&v1.IstioRevisionTag{}, all, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(tools.Users.Source()).
		WatchesRawSource(tools.Users.WatchErrorSource(r.requestsForAll))
	return tools.Objects.Watch(b, installer.Watch{
		Kind:          v1.IstioRevisionKind,
		ReleaseSuffix: istiodSuffix,
		Unowned:       r.requestsForAll,
		Namespace:     r.requestsInNamespace,
	}).Complete(r)
}

type reconciler struct {
	client   client.Client
	cache    client.Reader
	live     client.Reader
	objects  *installer.Objects
	releases *installer.ReleaseClient
	charts   *installer.Charts
	users    *usage.Tracker
	recorder events.EventRecorder
	now      func() time.Time
}

// Reconcile observes, plans, applies and reports one IstioRevision.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	observed, err := r.observe(ctx, request.Name, false)
	if err != nil {
		// Users of a name without a revision do not matter.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	plan := Plan(observed)
	decision := passage.Next(plan, passage.Batching{}, r.now())
	applyErr := r.apply(ctx, observed, decision.Start)
	if apierrors.IsConflict(applyErr) {
		return ctrl.Result{RequeueAfter: kube.ConflictRequeueDelay}, nil
	}
	if len(decision.Start) > 0 && applyErr == nil {
		if observed, err = r.observe(ctx, request.Name, true); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		plan = Plan(observed)
	}
	if observed.beingDeleted() && applyErr == nil && len(plan.Steps) == 0 {
		err := installer.RemoveFinalizer(ctx, r.client, observed.Revision)
		if err != nil || len(observed.Revision.Finalizers) == 0 {
			return ctrl.Result{}, err
		}
		plan = Plan(observed)
	}
	if err := r.report(ctx, observed, plan, applyErr); err != nil {
		return installer.StatusError(applyErr, err)
	}
	result, err := installer.Result(plan, errors.Join(applyErr, observed.DeploymentsErr), r.charts.RetryInterval())
	if err == nil && !observed.Usage.Known() {
		result = installer.RequeueUnknownUsage(result)
	}
	return result, err
}

// requestsForAll are the requests for every revision.
func (r *reconciler) requestsForAll(ctx context.Context) []ctrl.Request {
	return r.requestsMatching(ctx, func(*v1.IstioRevision) bool { return true })
}

// requestsInNamespace are the requests for the revisions of a namespace.
func (r *reconciler) requestsInNamespace(ctx context.Context, namespace string) []ctrl.Request {
	return r.requestsMatching(ctx, func(revision *v1.IstioRevision) bool { return revision.Spec.Namespace == namespace })
}

func (r *reconciler) requestsMatching(ctx context.Context, match func(*v1.IstioRevision) bool) []ctrl.Request {
	var list v1.IstioRevisionList
	if err := r.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list IstioRevisions to enqueue")
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if match(&list.Items[i]) {
			requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}})
		}
	}
	return requests
}
