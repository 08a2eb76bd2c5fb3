// Package binding brings bindings to Works: a template of the hub, as every cluster that it goes to is to run it. It reports on
// a binding what became of its Works.
package binding

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
)

// Setup adds the controller that brings bindings to Works.
func Setup(mgr ctrl.Manager, enqueued kube.Enqueuer, version func(context.Context, model.TemplateKey) string) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("adoption-binding").
		WithOptions(controller.Options{MaxConcurrentReconciles: model.MaxConcurrent, RateLimiter: kube.RateLimiter[reconcile.Request]()}).
		For(&workv1alpha2.ResourceBinding{}).
		Watches(&workv1alpha2.ClusterResourceBinding{}, &handler.EnqueueRequestForObject{}).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(model.BindingRequests)).
		WatchesRawSource(source.Channel(enqueued, &handler.EnqueueRequestForObject{})).
		Complete(kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: &reconciler{client: mgr.GetClient(), templates: mgr.GetAPIReader(), version: version, now: time.Now}})
	if err != nil {
		return fmt.Errorf("watch ResourceBindings: %w", err)
	}
	return nil
}

// reconciler makes the Works of a binding, and tells what became of them.
type reconciler struct {
	client client.Client
	// templates reads resources of the hub as they are right now.
	templates client.Reader
	// version is that of a resource, as far as it is known without asking; empty if it is not.
	version func(context.Context, model.TemplateKey) string
	written writtenWorks
	now     func() time.Time
}

// Reconcile brings one binding to its Works.
func (b *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	binding, err := model.GetBinding(ctx, b.client, request.Namespace, request.Name)
	if binding == nil || err != nil {
		return ctrl.Result{}, err
	}
	works, err := b.works(ctx, binding)
	if err != nil {
		return ctrl.Result{}, err
	}
	if binding.GetDeletionTimestamp() != nil {
		b.written.delete(binding.GetUID())
		return ctrl.Result{}, b.deleteAll(ctx, binding, works)
	}
	var wrong error
	if model.IsTaken(binding) {
		var large *workTooLargeError
		var written map[string]*workv1alpha1.Work
		if written, wrong, err = b.applyWorks(ctx, binding, works); errors.As(err, &large) {
			// Nothing becomes of it until it changes.
			return ctrl.Result{}, writeStatus(ctx, b.client, binding, large.status(binding, works, b.now()))
		} else if err != nil {
			return ctrl.Result{}, err
		}
		// The cache may have yet to hear of them, and would tell what became of those before.
		works = written
	}
	status, again := aggregateStatus(binding, works, wrong, b.now())
	if again > 0 {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	return ctrl.Result{}, writeStatus(ctx, b.client, binding, status)
}
