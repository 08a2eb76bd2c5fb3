// Package leftover finds objects in members that have the labels of this hub, and that the hub has no Work for.
package leftover

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
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
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// searchInterval is how often a cluster is searched, besides when it is connected and when its annotation changes. A search lists
// the metadata of labelled objects, once for each kind of the cluster.
const searchInterval = 6 * time.Hour

// retryInterval is after how long a cluster is searched again of which some kinds could not be listed.
const retryInterval = 10 * time.Minute

// Setup adds the controller that searches clusters. Connected has the clusters with a new client.
func Setup(mgr ctrl.Manager, connected kube.Enqueuer, m *member.Clients, hub string) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("adoption-leftover").
		WithOptions(controller.Options{MaxConcurrentReconciles: model.MaxConcurrent, RateLimiter: kube.RateLimiter[reconcile.Request]()}).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(searchable)).
		WatchesRawSource(source.Channel(connected, &handler.EnqueueRequestForObject{})).
		Complete(kube.Traced("adoption-leftover", kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: &reconciler{
			client: mgr.GetClient(), reader: mgr.GetAPIReader(), clientOf: m.Get, kindsOf: (*member.Client).DiscoverKinds, hub: hub,
			recorder: mgr.GetEventRecorder("fairlead.dev/" + model.Passage),
		}}))
	if err != nil {
		return fmt.Errorf("watch Clusters for leftovers: %w", err)
	}
	return nil
}

// searchable selects the moment from which a cluster can be reached, and changes of its annotation.
var searchable = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !isReady(e.ObjectOld) && isReady(e.ObjectNew) || e.ObjectOld.GetAnnotations()[AnnotationLeftovers] != e.ObjectNew.GetAnnotations()[AnnotationLeftovers]
	},
}

func isReady(cluster client.Object) bool {
	c, ok := cluster.(*clusterv1alpha1.Cluster)
	return ok && meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady)
}

// reconciler searches clusters for leftovers.
type reconciler struct {
	client client.Client
	reader client.Reader // without a cache
	// clientOf is the client for a cluster, nil while there is none.
	clientOf func(cluster string) *member.Client
	kindsOf  func(*member.Client) ([]schema.GroupVersionKind, error)
	hub      string
	recorder events.EventRecorder
}

// Reconcile searches one cluster.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	c, err := kube.GetIfExists(ctx, r.client, request.NamespacedName, &clusterv1alpha1.Cluster{})
	if c == nil || err != nil {
		leftoversGauge.DeleteLabelValues(request.Name)
		return ctrl.Result{}, err
	}
	m := r.clientOf(c.Name)
	if m == nil || !isReady(c) || c.DeletionTimestamp != nil {
		// Enqueued again when the cluster is connected and ready.
		return ctrl.Result{}, nil
	}
	candidates, err := r.findCandidates(ctx, m)
	errs := []error{err}
	left, applied, first := 0, 0, passage.Object{}
	for i := range candidates {
		o, err := r.observe(ctx, m, c, &candidates[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		switch action, why := Decide(o); action {
		case model.ActionOrphan, model.ActionDelete:
			applied++
			errs = append(errs, apply(ctx, m, &candidates[i], action, why))
		case model.ActionLeave:
			if left++; left == 1 {
				first = model.TemplateOf(&candidates[i]).Object()
			}
		}
	}
	leftoversGauge.WithLabelValues(c.Name).Set(float64(left))
	if left > 0 {
		r.recorder.Eventf(c, nil, corev1.EventTypeWarning, string(ReasonLeftovers), "Search", "%s", summarize(c.Name, left, first))
	}
	if err := errors.Join(errs...); err != nil && !member.IsUserError(err) {
		return ctrl.Result{}, err
	} else if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "search a cluster for leftovers", "cluster", c.Name)
		return ctrl.Result{RequeueAfter: retryInterval}, nil
	}
	if len(candidates) == maxCandidates && applied > 0 {
		// There may be more.
		return ctrl.Result{RequeueAfter: retryInterval}, nil
	}
	return ctrl.Result{RequeueAfter: searchInterval}, nil
}
