// Package istio keeps the revisions of an Istio: one that is active, and those before it for as long as they are used.
package istio

import (
	"context"
	"errors"
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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// +kubebuilder:rbac:groups=sailoperator.io,resources=istios,verbs=list;watch
// +kubebuilder:rbac:groups=sailoperator.io,resources=istios/status,verbs=patch
// +kubebuilder:rbac:groups=sailoperator.io,resources=istiorevisions,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller of Istios to the manager. The client reads from the manager's cache.
func Setup(mgr ctrl.Manager, consistent client.Client) error {
	r := &reconciler{
		client:   consistent,
		cache:    mgr.GetCache(),
		recorder: mgr.GetEventRecorder("fairlead.dev/" + v1.PassageRevision),
		now:      time.Now,
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("istio").
		For(&v1.Istio{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		))).
		Watches(&v1.IstioRevision{}, handler.EnqueueRequestsFromMapFunc(r.concerned),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Complete(r)
}

type reconciler struct {
	client client.Client
	// cache is read where waiting for our own writes would hold up events.
	cache    client.Reader
	recorder events.EventRecorder
	now      func() time.Time
}

// conflictPause lets the cache see what somebody else has just written.
const conflictPause = 100 * time.Millisecond

// Reconcile observes, plans, applies and reports one Istio.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	observed, err := Observe(ctx, r.client, request.Name)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if observed.beingDeleted() {
		return ctrl.Result{}, nil
	}

	plan := Plan(observed)
	decision := passage.Next(plan, passage.Batching{}, r.now())
	applyErr := r.apply(ctx, observed, decision.Start)
	if apierrors.IsConflict(applyErr) {
		// Somebody was faster: what they wrote is a matter for a new plan, not an error.
		ctrl.LoggerFrom(ctx).V(1).Info("decided on what has changed meanwhile", "why", applyErr.Error())
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	if len(decision.Start) > 0 && applyErr == nil {
		if observed, err = Observe(ctx, r.client, request.Name); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		plan = Plan(observed)
	}

	if err := r.report(ctx, observed, plan, applyErr); err != nil {
		return ctrl.Result{}, errors.Join(applyErr, err)
	}
	if apierrors.IsInvalid(applyErr) {
		return ctrl.Result{}, reconcile.TerminalError(applyErr)
	}
	if applyErr != nil {
		return ctrl.Result{}, applyErr
	}
	if failed := plan.Failures(); len(failed) > 0 && plan.Hold == nil {
		return ctrl.Result{}, reconcile.TerminalError(errors.New(failed[0].Reason.String()))
	}
	return ctrl.Result{}, nil
}

// concerned are the Istios that a revision means something to: the one it belongs to, and any that wants its name and
// may have been waiting for it to become free.
func (r *reconciler) concerned(ctx context.Context, revision client.Object) []ctrl.Request {
	var names []string
	if owner := metav1.GetControllerOf(revision); isIstio(owner) {
		names = append(names, owner.Name)
	}
	var istios v1.IstioList
	if err := r.cache.List(ctx, &istios, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the Istios that an IstioRevision concerns", "IstioRevision", revision.GetName())
	}
	for i := range istios.Items {
		istio := &istios.Items[i]
		if unresolvable(istio.Spec.Version) == nil && revisionName(istio) == revision.GetName() {
			names = append(names, istio.Name)
		}
	}
	requests := make([]ctrl.Request, 0, len(names))
	for _, name := range names {
		requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return requests
}
