// Package istio keeps the revisions of an Istio: one that is active, and those before it for as long as they are used.
package istio

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// +kubebuilder:rbac:groups=sailoperator.io,resources=istios,verbs=list;watch;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=sail-operator-lock,verbs=list;watch
// +kubebuilder:rbac:groups=sailoperator.io,resources=istios/status,verbs=patch
// +kubebuilder:rbac:groups=sailoperator.io,resources=istiorevisions,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=sailoperator.io,resources=istiorevisiontags,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller of Istios to the manager.
func Setup(mgr ctrl.Manager, tools installer.Tools) error {
	r := &reconciler{tools, mgr.GetAPIReader()}
	return ctrl.NewControllerManagedBy(mgr).
		Named("istio").
		WithLogConstructor(kube.Logger(mgr, "istio", v1.IstioKind)).
		For(&v1.Istio{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		))).
		Watches(&v1.IstioRevision{}, handler.EnqueueRequestsFromMapFunc(r.requestsForRevision),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1.IstioRevisionTag{}, handler.EnqueueRequestsFromMapFunc(requestsForTag),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1.IstioRevision{}, handler.EnqueueRequestsFromMapFunc(r.allIstios), builder.WithPredicates(comesOrGoes)).
		Watches(&v1.IstioRevisionTag{}, handler.EnqueueRequestsFromMapFunc(r.allIstios), builder.WithPredicates(comesOrGoes)).
		WatchesRawSource(tools.Usage.SourceFor(r.requestsForName)).
		Complete(kube.Traced("istio", r))
}

type reconciler struct {
	installer.Tools
	// live reads webhooks, of which the cache has only our own.
	live client.Reader
}

// statusPollInterval is how often to look at a status that lags behind.
const statusPollInterval = 5 * time.Second

// Reconcile observes, plans, applies and reports one Istio.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if !r.Usage.HasSynced() {
		// A revision must not be taken for unused before the tracker has synced.
		return ctrl.Result{RequeueAfter: kube.ConflictRequeueDelay}, nil
	}
	observed, err := r.observe(ctx, request.Name)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if observed.beingDeleted() {
		// Its revisions are deleted after it. Until then, report.
		if err := r.report(ctx, observed, Plan(observed, r.Now()), nil); err != nil {
			return installer.StatusError(nil, err)
		}
		return ctrl.Result{}, nil
	}

	plan := r.plan(ctx, observed)
	start := startable(plan, r.Now())
	applyErr := r.apply(ctx, observed, start)
	if apierrors.IsConflict(applyErr) {
		// Another client was faster: its write leads to a new plan, and is no error.
		ctrl.LoggerFrom(ctx).V(1).Info("conflict: an object has changed since it was read", "why", applyErr.Error())
		return ctrl.Result{RequeueAfter: kube.ConflictRequeueDelay}, nil
	}
	if len(start) > 0 && applyErr == nil {
		if observed, err = r.observe(ctx, request.Name); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		plan = r.plan(ctx, observed)
	}

	if err := r.report(ctx, observed, plan, applyErr); err != nil {
		return installer.StatusError(applyErr, err)
	}
	if apierrors.IsInvalid(applyErr) {
		return ctrl.Result{RequeueAfter: installer.RefusedRetryInterval}, nil
	}
	if applyErr != nil {
		return ctrl.Result{}, applyErr
	}
	return ctrl.Result{RequeueAfter: r.requeueAfter(observed, plan)}, nil
}

func (r *reconciler) plan(ctx context.Context, o Observed) passage.Plan {
	defer kube.Span(&ctx, kube.StagePlan)()
	return Plan(o, r.Now())
}

func (r *reconciler) observe(ctx context.Context, name string) (Observed, error) {
	defer kube.Span(&ctx, kube.StageObserve)()
	versions, err := r.Charts.Versions(ctx)
	o, err := Observe(ctx, r.Client, name, Charts{Versions: versions, Err: err}, r.Usage)
	if err != nil {
		return o, err
	}
	o.Unresolved, err = r.observeUnresolved(ctx)
	return o, err
}

// requeueAfter is when the passage of time may change the plan: at the end of a grace period, or with newer charts.
func (r *reconciler) requeueAfter(o Observed, plan passage.Plan) time.Duration {
	var after time.Duration
	if !isExactVersion(o.Istio.Spec.Version) || o.Charts.Err != nil || hasUnresolvedVersion(plan) {
		after = r.Charts.Refresh()
	}
	if statusLagsUsage(o, plan) || slices.ContainsFunc(plan.Steps, hasUnknownUsage) {
		after = statusPollInterval
	}
	now := r.Now()
	if due, running := nextPruneTime(o, plan, now); running && (after == 0 || due.Sub(now) < after) {
		after = due.Sub(now)
	}
	return after
}

// hasUnknownUsage tells whether the usage of a revision is unknown. No event reports the end of that.
func hasUnknownUsage(step passage.Step) bool {
	return step.Reason.Code == passage.Code(v1.ReasonUsageCheckFailed)
}

func hasUnresolvedVersion(plan passage.Plan) bool {
	return slices.ContainsFunc(plan.Steps, func(s passage.Step) bool { return s.Action == ActionResolve })
}

// requestsForTag enqueues the Istio that a tag follows, and the one that it belongs to.
func requestsForTag(_ context.Context, tag client.Object) []ctrl.Request {
	var requests []ctrl.Request
	if ref := tag.(*v1.IstioRevisionTag).Spec.TargetRef; ref.Kind == v1.IstioKind {
		requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: ref.Name}})
	}
	if owner := metav1.GetControllerOf(tag); isIstio(owner) {
		requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: owner.Name}})
	}
	return requests
}

// requestsForRevision enqueues the owner of a revision, and every Istio that may wait for its name.
func (r *reconciler) requestsForRevision(ctx context.Context, revision client.Object) []ctrl.Request {
	name, owner := revision.GetName(), metav1.GetControllerOf(revision)
	return kube.RequestsMatching(ctx, r.Cache, &v1.IstioList{}, func(istio *v1.Istio) bool {
		return isIstio(owner) && owner.Name == istio.Name || name == istio.Name || strings.HasPrefix(name, istio.Name+"-v")
	})
}
