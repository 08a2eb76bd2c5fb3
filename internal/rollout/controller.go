// Package rollout is the passage that takes an environment of Materialize from one generation to the next when its spec
// changes: the next generation is created beside the active one, and is promoted when it is ready.
package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/environmentd"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=materializes.materialize.cloud,verbs=get;create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,resourceNames=materializes.materialize.cloud,verbs=patch
// +kubebuilder:rbac:groups=materialize.cloud,resources=materializes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=materialize.cloud,resources=materializes/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;services;serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cert-manager.io,resources=certificates,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// What environmentd is granted, which the operator has to hold itself.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// Name of the passage.
const Name = v1alpha2.PassageRollout

// Caches are the kinds that the passage reads from the manager's cache.
func Caches() []client.Object { return []client.Object{&v1alpha2.Materialize{}} }

// maxConcurrentReconciles is high, so that an environmentd that is slow to answer does not delay other environments.
const maxConcurrentReconciles = 16

// Setup adds the passage to the manager.
func Setup(mgr ctrl.Manager, options environmentd.Options) error {
	leaders, err := environmentd.NewClient(options)
	if err != nil {
		return err
	}
	own, err := kube.NewConsistentClient(mgr, client.CacheOptions{Reader: mgr.GetCache(), Unstructured: true})
	if err != nil {
		return err
	}
	owned, err := newOwnedObjects(mgr)
	if err != nil {
		return err
	}
	r := &reconciler{
		client: own, objects: owned.client, live: mgr.GetClient(), watchCertificates: owned.watchCertificates, leaders: leaders,
		reader:   newCacheReader(owned, mgr.GetAPIReader()),
		hashes:   currentHasher,
		recorder: mgr.GetEventRecorder("fairlead.dev/" + v1alpha2.PassageRollout),
		now:      time.Now, newID: objects.NewResourceID, backoff: newFailureBackoff(),
		freshness: &freshnessCheck{live: mgr.GetAPIReader()},
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("rollout").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: maxConcurrentReconciles, RateLimiter: newRateLimiter(), ReconciliationTimeout: reconciliationTimeout(options),
		}).
		WithLogConstructor(kube.Logger(mgr, "rollout", v1alpha2.MaterializeKind)).
		For(&v1alpha2.Materialize{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	c, err := b.Build(kube.Traced("rollout", r))
	if err != nil {
		return fmt.Errorf("watch Materializes: %w", err)
	}
	return owned.watchAll(c)
}

// reconciliationTimeout leaves environmentd the time that it is given for each of the three requests of a reconcile: how far it is, to
// skip the catch-up, and to promote.
func reconciliationTimeout(options environmentd.Options) time.Duration {
	return 2*time.Minute + 3*cmp.Or(options.Timeout, environmentd.DefaultTimeout)
}

// newRateLimiter limits the retries of errors that are not reported in the status.
func newRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, maxRetryDelay)
}

type reconciler struct {
	// client reads Materializes, and objects their objects; both read their own writes. live reads from the API server.
	client  client.Client
	objects client.Client
	live    client.Client
	reader  Reader
	// watchCertificates watches Certificates once cert-manager is installed.
	watchCertificates func(context.Context) error
	leaders           leaderClient
	hashes            hasher
	recorder          events.EventRecorder
	now               func() time.Time
	newID             func() string
	metrics           rolloutMetrics
	backoff           failureBackoff
	freshness         *freshnessCheck
}

type leaderClient interface {
	Status(context.Context, environmentd.Address) (v1alpha2.LeaderStatus, error)
	Promote(context.Context, environmentd.Address) error
	SkipCatchup(context.Context, environmentd.Address) error
}

// Reconcile observes, plans, applies and reports one environment.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o, d, failed := r.reconcileSteps(ctx, request.NamespacedName)
	switch stopped := failed.blocking; {
	case o.Materialize == nil && apierrors.IsNotFound(stopped):
		r.metrics.forget(request.NamespacedName)
		r.freshness.verified.Delete(request.NamespacedName)
		r.backoff.next(request.NamespacedName, false)
		return ctrl.Result{}, nil
	case apierrors.IsConflict(stopped):
		// Another client wrote first. That needs a new plan, and is no error.
		return ctrl.Result{RequeueAfter: kube.ConflictRequeueDelay}, nil
	case stopped != nil && (o.Materialize == nil || !isReportable(stopped)):
		return ctrl.Result{}, stopped
	case !o.Materialize.DeletionTimestamp.IsZero():
		// Its objects are garbage-collected with it.
		return ctrl.Result{}, nil
	}
	reported := failed
	if !r.backoff.isPersistent(request.NamespacedName) {
		reported = failed.withoutTransient()
	}
	if err := r.report(ctx, o, d, reported); apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: kube.ConflictRequeueDelay}, nil
	} else if err != nil {
		return ctrl.Result{}, errors.Join(failed.blocking, err)
	}
	if failed.blocking != nil {
		ctrl.LoggerFrom(ctx).Info("step failed, retrying", "error", failed.blocking.Error())
	}
	return ctrl.Result{RequeueAfter: r.requeueAfter(request, o, d, failed)}, nil
}

func (r *reconciler) observe(ctx context.Context, key client.ObjectKey) (Observed, error) {
	defer kube.Span(&ctx, kube.StageObserve)()
	var m v1alpha2.Materialize
	if err := r.client.Get(ctx, key, &m); err != nil {
		return Observed{}, err
	}
	return observe(ctx, &m, r.reader, r.askLeader, r.hashes)
}

func (r *reconciler) askLeader(ctx context.Context, at environmentd.Address) v1alpha2.LeaderAnswer {
	status, err := r.leaders.Status(ctx, at)
	if err != nil {
		return v1alpha2.LeaderAnswer{Status: v1alpha2.LeaderUnknown, Message: err.Error()}
	}
	return v1alpha2.LeaderAnswer{Status: status}
}

// requeueAfter is when time alone may change the plan, or environmentd is asked again.
func (r *reconciler) requeueAfter(request ctrl.Request, o Observed, d decision, failed applyErrors) time.Duration {
	pause := r.backoff.next(request.NamespacedName, failed.any() || o.Leader.Status == v1alpha2.LeaderUnknown)
	if o.Promoting() {
		pause = min(pause, maxPromotingInterval)
	}
	var next time.Duration
	step := firstOpenStep(d.Steps)
	switch {
	case failed.any(), o.Leader.Status == v1alpha2.LeaderUnknown:
		next = pause
	case d.Hold != nil:
		return 0
	case step != nil && (step.Action == ActionRemove || step.State == passage.Running) && o.findUnlabelled(step.Object) != nil:
		// Unlabelled objects are not watched.
		next = pause
	case step != nil && step.Action == ActionApprove:
		next = approvalPollInterval
	case o.Leader.Status != "":
		next = pause
	}
	if next == 0 && o.refusesAccount() != nil {
		// ServiceAccounts of others are not watched.
		next = maxBackoff
	}
	if o.Underway() && !o.Promoting() && !o.Expired(r.now()) {
		if left := o.deadline().Sub(r.now()); next == 0 || left < next {
			next = max(left, time.Millisecond)
		}
	}
	return next
}
