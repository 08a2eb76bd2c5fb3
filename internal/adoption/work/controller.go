// Package work brings a Work to one object in one member: create, take over, update, leave, restore, orphan, delete.
package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
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
	undo := &originals{client: mgr.GetClient(), reader: mgr.GetAPIReader()}
	err := ctrl.NewControllerManagedBy(mgr).Named("adoption-work").
		WithOptions(controller.Options{MaxConcurrentReconciles: model.MaxConcurrent, RateLimiter: kube.RateLimiter[reconcile.Request]()}).
		For(&workv1alpha1.Work{}, builder.WithPredicates(model.SpecChanged)).
		WatchesRawSource(source.Channel(enqueued, &handler.EnqueueRequestForObject{})).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(worksOf(mgr.GetCache())), builder.WithPredicates(becameReady)).
		Complete(kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: &reconciler{client: mgr.GetClient(), members: m, hub: hub, originals: undo, now: time.Now}})
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
			ctrl.LoggerFrom(ctx).Error(err, "find what waits for a cluster", "cluster", cluster.GetName())
			return nil
		}
		var all []reconcile.Request
		for i := range list.Items {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return all
	}
}

// RecheckInterval is how often what was refused, or is in conflict, is looked at again, besides when anything on the hub changes.
const RecheckInterval = 20 * time.Second

// reconciler carries Works out in their clusters.
type reconciler struct {
	client    client.Client
	members   *member.Clients
	hub       string
	originals *originals
	now       func() time.Time
	freshness freshnessCheck
	// driftLimiter are the objects that somebody else keeps changing.
	driftLimiter driftLimiter
}

// Reconcile brings one Work to its cluster.
func (e *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var work workv1alpha1.Work
	if err := e.client.Get(ctx, request.NamespacedName, &work); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if e.freshness.isStale(&work) {
		return ctrl.Result{RequeueAfter: cacheDelay}, nil
	}
	name, ok := model.ClusterOf(work.Namespace)
	if !ok {
		return ctrl.Result{}, nil
	}
	var cluster clusterv1alpha1.Cluster
	if err := e.client.Get(ctx, client.ObjectKey{Name: name}, &cluster); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if going := !work.DeletionTimestamp.IsZero(); going && (err != nil || member.IsAbandoned(&cluster)) {
		// There is no cluster any more that anything could be written to.
		return ctrl.Result{}, errors.Join(e.originals.delete(ctx, &work), e.removeFinalizer(ctx, &work))
	} else if err != nil {
		return ctrl.Result{}, nil
	}
	how, err := e.deletionActionOf(ctx, &work, &cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if how == Keep {
		return ctrl.Result{}, e.removeFinalizer(ctx, &work)
	}
	m := e.members.Get(name)
	if m == nil || !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ConditionReady) {
		// When the cluster can be reached, all of its Works are looked at.
		return ctrl.Result{}, e.reportUnreachable(ctx, &work, &cluster)
	}
	if !work.DeletionTimestamp.IsZero() {
		err := e.releaseObjects(ctx, m, &work, how)
		if err == nil || !member.IsUserError(err) {
			return ctrl.Result{}, err
		}
		status := *work.Status.DeepCopy()
		e.setCondition(&work, &status, metav1.ConditionFalse, passage.Because(model.ReasonFailed, "%v", err))
		return ctrl.Result{RequeueAfter: RecheckInterval}, e.writeStatus(ctx, &work, status)
	}
	if cluster.DeletionTimestamp != nil {
		// Nothing is begun in a cluster that leaves.
		return ctrl.Result{}, nil
	}
	status, again, err := e.applyWork(ctx, m, &work)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := e.writeStatus(ctx, &work, status); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// becameReady leaves out everything about a cluster but that it can be reached from now on.
var becameReady = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool { return !isReady(e.ObjectOld) && isReady(e.ObjectNew) },
}

func isReady(cluster client.Object) bool {
	c, ok := cluster.(*clusterv1alpha1.Cluster)
	return ok && meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady)
}
