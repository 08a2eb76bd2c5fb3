// Package work brings a Work to one object in one member: create, take over, update, leave, restore, orphan, delete.
package work

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// Setup adds the controller that brings Works to members.
func Setup(mgr ctrl.Manager, enqueued kube.Enqueuer, m *member.Clients, hub string) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("adoption-work").
		WithOptions(controller.Options{MaxConcurrentReconciles: model.MaxConcurrent, RateLimiter: kube.RateLimiter[reconcile.Request]()}).
		For(&workv1alpha1.Work{}, builder.WithPredicates(model.SpecChanged)).
		WatchesRawSource(source.Channel(enqueued, &handler.EnqueueRequestForObject{})).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(worksOf(mgr.GetCache())), builder.WithPredicates(becameReady)).
		Complete(kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: &reconciler{
			client: mgr.GetClient(), reader: mgr.GetAPIReader(), clientOf: m.Get, hub: hub, now: time.Now,
			originals: &originals{client: mgr.GetClient(), reader: mgr.GetAPIReader()},
		}})
	if err != nil {
		return fmt.Errorf("watch Works: %w", err)
	}
	return nil
}

// worksOf finds the Works of a cluster.
func worksOf(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, cluster client.Object) []reconcile.Request {
		var list workv1alpha1.WorkList
		if err := reader.List(ctx, &list, client.InNamespace(model.ExecutionNamespace(cluster.GetName())), client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the Works of a cluster", "cluster", cluster.GetName())
			return nil
		}
		var all []reconcile.Request
		for i := range list.Items {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return all
	}
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
	now          func() time.Time
	freshness    freshnessCheck
	driftLimiter driftLimiter
}

// Reconcile brings one Work to its member.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var work workv1alpha1.Work
	if err := r.client.Get(ctx, request.NamespacedName, &work); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.freshness.isStale(&work) {
		return ctrl.Result{RequeueAfter: cacheDelay}, nil
	}
	cluster, ok := model.ClusterOf(work.Namespace)
	if !ok {
		return ctrl.Result{}, nil
	}
	m := r.clientOf(cluster)
	o, err := r.observeHub(ctx, &work, cluster, m != nil)
	if err != nil {
		return ctrl.Result{}, err
	}
	if hold := Hold(o); hold != nil {
		if status := HeldStatus(o, *hold, r.now()); status != nil {
			return ctrl.Result{}, r.writeStatus(ctx, &work, *status)
		}
		return ctrl.Result{}, nil
	}
	if !work.DeletionTimestamp.IsZero() {
		return r.reconcileDeleted(ctx, m, o)
	}
	status, err := r.reconcileActive(ctx, m, &o)
	if err != nil {
		return ctrl.Result{}, err
	}
	var result ctrl.Result
	if !meta.IsStatusConditionTrue(status.Conditions, workv1alpha1.ConditionApplied) {
		result.RequeueAfter = RecheckInterval
	}
	return result, r.writeStatus(ctx, &work, status)
}

// reconcileActive observes, plans and applies a Work that stays, and returns its new status.
func (r *reconciler) reconcileActive(ctx context.Context, m *member.Client, o *Observed) (workv1alpha1.WorkStatus, error) {
	var statuses []workv1alpha1.ManifestStatus
	for i := range o.Work.Spec.Workload.Manifests {
		one, reason, err := r.applyManifest(ctx, m, o, i)
		if member.IsUserError(err) {
			reason = ptr.To(member.RefusedReason(m.Name, o.Objects[i].Manifest, err))
		} else if err != nil {
			return o.Work.Status, err
		}
		if reason != nil {
			return WithApplied(o.Work, metav1.ConditionFalse, *reason, r.now()), nil
		}
		statuses = append(statuses, *one)
	}
	return AppliedStatus(o.Work, m.Name, statuses, r.now()), nil
}

// applyManifest observes, plans and applies one manifest. The reason is why the manifest is not applied.
func (r *reconciler) applyManifest(ctx context.Context, m *member.Client, o *Observed, i int) (*workv1alpha1.ManifestStatus, *passage.Reason, error) {
	object, err := r.observeMember(ctx, m, o, i)
	o.Objects = append(o.Objects, object)
	if err != nil {
		return nil, nil, err
	}
	d := Decide(*o, r.now())
	step := d.Steps[i]
	if step.Action == model.ActionLeave || step.Action == model.ActionWait {
		return nil, &step.Reason, nil
	}
	live, err := r.applyStep(ctx, m, o, d, i)
	if err != nil {
		return nil, nil, err
	}
	return StepStatus(*o, i, step, live), nil, nil
}

// reconcileDeleted observes, plans and applies a Work that is being deleted, and removes its finalizer.
func (r *reconciler) reconcileDeleted(ctx context.Context, m *member.Client, o Observed) (ctrl.Result, error) {
	switch deletion := deletionOf(o); deletion {
	case model.ActionKeep:
		return ctrl.Result{}, r.removeFinalizer(ctx, o.Work)
	case model.ActionAbandon:
	default:
		if !controllerutil.ContainsFinalizer(o.Work, model.FinalizerExecution) {
			return ctrl.Result{}, nil
		}
		err := r.releaseObjects(ctx, m, &o)
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

func (r *reconciler) releaseObjects(ctx context.Context, m *member.Client, o *Observed) error {
	for i := range o.Work.Spec.Workload.Manifests {
		object, err := r.observeMember(ctx, m, o, i)
		if err != nil {
			return err
		}
		o.Objects = append(o.Objects, object)
		if _, err := r.applyStep(ctx, m, o, Decide(*o, r.now()), i); err != nil {
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
