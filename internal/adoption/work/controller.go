// Package work brings a Work to one object in one member: create, take over, update, leave, restore, orphan, delete.
package work

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// Setup adds the controller that brings Works to members.
func Setup(mgr ctrl.Manager, enqueued kube.Enqueuer, m *member.Clients, hub string) error {
	worksOf := func(ctx context.Context, cluster client.Object) []reconcile.Request {
		return WorksOf(ctx, mgr.GetCache(), cluster.GetName())
	}
	worksOfBinding := func(ctx context.Context, binding client.Object) []reconcile.Request {
		return kube.RequestsMatching(ctx, mgr.GetCache(), &workv1alpha1.WorkList{}, func(*workv1alpha1.Work) bool { return true },
			client.MatchingFields{model.IndexBinding: model.BindingPath(client.ObjectKeyFromObject(binding))})
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("adoption-work").
		WithOptions(controller.Options{MaxConcurrentReconciles: maxWorkers, RateLimiter: kube.RateLimiter[reconcile.Request]()}).
		For(&workv1alpha1.Work{}, builder.WithPredicates(model.SpecChanged)).
		WatchesRawSource(source.Channel(enqueued, &handler.EnqueueRequestForObject{})).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(worksOf), builder.WithPredicates(becameReady)).
		Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(worksOfBinding), builder.WithPredicates(becameAbandoned)).
		Watches(&workv1alpha2.ClusterResourceBinding{}, handler.EnqueueRequestsFromMapFunc(worksOfBinding), builder.WithPredicates(becameAbandoned)).
		Complete(newClusterLimiter(kube.Traced("adoption-work", kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: &reconciler{
			client: mgr.GetClient(), reader: mgr.GetAPIReader(), clientOf: m.Get, hub: hub, now: time.Now, rechecks: &m.Rechecks,
			originals: &originals{client: mgr.GetClient(), reader: mgr.GetAPIReader()},
		}}), model.MaxConcurrent, enqueued.Enqueue))
	if err != nil {
		return fmt.Errorf("watch Works: %w", err)
	}
	return nil
}

// WorksOf finds the Works of a cluster that the options select.
func WorksOf(ctx context.Context, cache client.Reader, cluster string, options ...client.ListOption) []reconcile.Request {
	options = append(options, client.InNamespace(model.ExecutionNamespace(cluster)))
	return kube.RequestsMatching(ctx, cache, &workv1alpha1.WorkList{}, func(*workv1alpha1.Work) bool { return true }, options...)
}

// RecheckInterval is how often a Work that is refused or in conflict is tried again, besides when anything on the hub changes.
const RecheckInterval = 20 * time.Second

// reconciler brings Works to their members.
type reconciler struct {
	client client.Client
	reader client.Reader // without a cache
	// clientOf is the client for a cluster, nil while there is none. It may change between two calls.
	clientOf     func(cluster string) *member.Client
	hub          string
	originals    *originals
	rechecks     *member.Rechecks
	now          func() time.Time
	freshness    freshnessCheck
	comparisons  comparisons
	driftLimiter kube.DriftLimiter[types.UID]
}

// Reconcile brings one Work to its member.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster, ok := model.ClusterOf(request.Namespace)
	if !ok {
		return ctrl.Result{}, nil
	}
	// Before anything is read: a comparison that began earlier does not count.
	rechecked := r.rechecks.Begin(cluster, request.NamespacedName)
	var work workv1alpha1.Work
	if err := r.client.Get(ctx, request.NamespacedName, &work); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if err != nil {
		if rechecked != nil {
			rechecked()
		}
		return ctrl.Result{}, nil
	}
	if stale, err := r.freshness.isStale(ctx, r.reader, &work, r.now()); err != nil {
		return ctrl.Result{}, err
	} else if stale {
		return ctrl.Result{RequeueAfter: cacheDelay}, nil
	}
	m := r.clientOf(cluster)
	if m != nil && rechecked == nil && r.comparisons.isCurrent(ctx, &work, m) {
		return ctrl.Result{}, nil
	}
	result, compared, err := r.reconcile(ctx, cluster, m, &work)
	if err != nil || !compared || rechecked == nil {
		return result, err
	}
	binding, err := bindingOf(ctx, r.client, &work)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !isReported(&work, cluster, binding) {
		return ctrl.Result{RequeueAfter: reportDelay}, nil
	}
	rechecked()
	return result, nil
}

// reportDelay is how long a binding is given to report the state of a Work.
const reportDelay = time.Second

// reconcile tells whether the object in the member was compared with the Work, or need not be. The Work has the status that was
// written.
func (r *reconciler) reconcile(ctx context.Context, cluster string, m *member.Client, work *workv1alpha1.Work) (result ctrl.Result, compared bool, err error) {
	o, err := r.observeHub(ctx, work, cluster, m != nil)
	if err != nil {
		return ctrl.Result{}, false, err
	}
	if hold := Hold(o); hold != nil {
		compared = hold.Code != model.ReasonUnreachable
		if status := HeldStatus(o, *hold, r.now()); status != nil {
			return ctrl.Result{}, compared, r.writeStatus(ctx, work, *status)
		}
		return ctrl.Result{}, compared, nil
	}
	if !work.DeletionTimestamp.IsZero() {
		result, err = r.reconcileDeleted(ctx, m, o)
		return result, true, err
	}
	status, live, err := r.reconcileActive(ctx, m, o)
	if err != nil {
		return ctrl.Result{}, false, err
	}
	if err := r.writeStatus(ctx, work, status); err != nil {
		return ctrl.Result{}, false, err
	}
	applied := meta.FindStatusCondition(status.Conditions, workv1alpha1.ConditionApplied)
	if applied.Status != metav1.ConditionTrue {
		result.RequeueAfter = RecheckInterval
	} else if live != nil {
		r.comparisons.record(work, live)
	}
	return result, passage.Code(applied.Reason) != model.ReasonUnreachable, nil
}

// reconcileActive observes, plans and applies a Work that stays, and returns its new status, and the object of a Work that has one
// and is applied.
func (r *reconciler) reconcileActive(ctx context.Context, m *member.Client, o Observed) (workv1alpha1.WorkStatus, *unstructured.Unstructured, error) {
	var statuses []workv1alpha1.ManifestStatus
	var live *unstructured.Unstructured
	for i := range o.Work.Spec.Workload.Manifests {
		object, err := r.observeMember(ctx, m, o, i)
		var step Step
		if err == nil {
			if step = plan(ctx, o, object); step.Action == model.ActionLeave || step.Action == model.ActionWait {
				return WithApplied(o.Work, metav1.ConditionFalse, step.Reason, r.now()), nil, nil
			}
			object.Live, err = r.applyStep(ctx, m, o.Work, object, step)
		}
		if member.IsUserError(err) {
			return WithApplied(o.Work, metav1.ConditionFalse, member.RefusedReason(m.Name, object.Manifest, err), r.now()), nil, nil
		} else if err != nil {
			return o.Work.Status, nil, err
		}
		live = object.Live
		statuses = append(statuses, *StepStatus(o.Work, object, step.Action))
	}
	if len(statuses) != 1 {
		live = nil
	}
	return AppliedStatus(o.Work, m.Name, statuses, r.now()), live, nil
}

func plan(ctx context.Context, o Observed, object Object) Step {
	defer kube.Span(&ctx, kube.StagePlan)()
	return Decide(o, object)
}

// reconcileDeleted observes, plans and applies a Work that is being deleted, and removes its finalizer.
func (r *reconciler) reconcileDeleted(ctx context.Context, m *member.Client, o Observed) (ctrl.Result, error) {
	switch DeletionOf(o) {
	case model.ActionKeep:
		return ctrl.Result{}, r.removeFinalizer(ctx, o.Work)
	case model.ActionAbandon:
	default:
		if !controllerutil.ContainsFinalizer(o.Work, model.FinalizerExecution) {
			return ctrl.Result{}, nil
		}
		err := r.releaseObjects(ctx, m, o)
		if member.IsUserError(err) {
			status := WithApplied(o.Work, metav1.ConditionFalse, passage.Because(model.ReasonFailed, "%v", err), r.now())
			return ctrl.Result{RequeueAfter: RecheckInterval}, r.writeStatus(ctx, o.Work, status)
		} else if err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.originals.delete(ctx, o.Work); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.removeFinalizer(ctx, o.Work)
}

func (r *reconciler) releaseObjects(ctx context.Context, m *member.Client, o Observed) error {
	for i := range o.Work.Spec.Workload.Manifests {
		object, err := r.observeMember(ctx, m, o, i)
		if err != nil {
			return err
		}
		if _, err := r.applyStep(ctx, m, o.Work, object, plan(ctx, o, object)); err != nil {
			return err
		}
	}
	return nil
}

// becameReady selects the moment from which a cluster can be reached.
var becameReady = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool { return !isReady(e.ObjectOld) && isReady(e.ObjectNew) },
}

func isReady(cluster client.Object) bool {
	c, ok := cluster.(*clusterv1alpha1.Cluster)
	return ok && meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady)
}

// becameAbandoned selects the moment from which a binding does not wait any more for clusters that cannot be reached.
var becameAbandoned = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !isAbandoned(model.AsBinding(e.ObjectOld)) && isAbandoned(model.AsBinding(e.ObjectNew))
	},
}
