// Package binding brings bindings to Works, one for each cluster that the template of the binding goes to, and reports the state
// of the Works in the status of the binding.
package binding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
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
		Watches(&workv1alpha2.ResourceBinding{}, dependencyEvents).
		Watches(&workv1alpha2.ClusterResourceBinding{}, &handler.EnqueueRequestForObject{}).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(model.BindingRequests)).
		WatchesRawSource(source.Channel(enqueued, &handler.EnqueueRequestForObject{})).
		Complete(kube.Traced("adoption-binding", kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: &reconciler{
			client: mgr.GetClient(), reader: mgr.GetAPIReader(), version: version, now: time.Now, recorder: mgr.GetEventRecorder("fairlead.dev/" + model.Passage),
		}}))
	if err != nil {
		return fmt.Errorf("watch ResourceBindings: %w", err)
	}
	return nil
}

// dependencyEvents enqueues the bindings that required the template of one that is gone.
var dependencyEvents = handler.Funcs{
	DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, by := range model.AsBinding(e.Object).Spec.RequiredBy {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: by.Namespace, Name: by.Name}})
		}
	},
}

// reconciler brings bindings to Works, and reports the state of the Works.
type reconciler struct {
	client client.Client
	// reader reads from the API server, without a cache.
	reader client.Reader
	// version is that of a template, if a cache has it; empty otherwise.
	version  func(context.Context, model.TemplateKey) string
	written  writtenWorks
	now      func() time.Time
	recorder events.EventRecorder
}

// Reconcile brings one binding to its Works.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	b, err := model.GetBinding(ctx, r.client, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	o := Observed{Binding: b}
	if o.Works, err = model.ListWorks(ctx, r.client, model.BindingPath(request.NamespacedName)); err != nil {
		return ctrl.Result{}, err
	}
	if b == nil {
		return ctrl.Result{}, r.reconcileUnbound(ctx, request.NamespacedName, o)
	}
	if b.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, r.reconcileDeleted(ctx, o)
	}
	from := sourceOf(b)
	if from.Refused = refusal(o); from.Refused == nil && (model.IsTaken(b) || len(unplacedWorks(o)) > 0 || haveContent(o)) {
		var refusals workRefusals
		if o.Works, from, err = r.reconcileActive(ctx, o); errors.As(err, &refusals) {
			return ctrl.Result{RequeueAfter: refusals.retryAfter()}, writeStatus(ctx, r.client, b, refusals.status(b, o.Works, from, r.now()))
		} else if err != nil {
			return ctrl.Result{}, err
		}
	}
	status, requeueAfter := AggregateStatus(b, o.Works, from, r.now())
	if requeueAfter > 0 {
		return ctrl.Result{RequeueAfter: requeueAfter}, nil
	}
	return ctrl.Result{}, writeStatus(ctx, r.client, b, status)
}

// reconcileActive observes the template, plans and applies a binding that stays. The Works are returned as they were
// written, because the cache may be older, and with them what they were made from.
func (r *reconciler) reconcileActive(ctx context.Context, o Observed) (map[string]*workv1alpha1.Work, Source, error) {
	key := model.TemplateKeyOf(o.Binding)
	cached := r.version(ctx, key)
	if from, found := r.written.lookup(o.Binding, cached, o.Works); found {
		return o.Works, from, nil
	}
	o.Template = &unstructured.Unstructured{}
	if exists, err := r.getTemplate(ctx, key, cached, o.Template); err != nil || !exists {
		// The template controller deletes the binding of a template that is gone.
		return o.Works, sourceOf(o.Binding), err
	}
	if err := r.refreshFinished(ctx, &o); err != nil {
		return o.Works, sourceOf(o.Binding), err
	}
	d := plan(ctx, o)
	if d.Err != nil {
		return o.Works, d.Source, d.Err
	}
	if err := r.reportProtected(ctx, o, d); err != nil {
		return o.Works, d.Source, err
	}
	works, err := r.applyWorks(ctx, o, d)
	if err != nil {
		return works, d.Source, err
	}
	// A Work that is kept may be deleted as soon as the status of another one changes.
	if o.Template.GetResourceVersion() == cached && d.Kept == nil {
		r.written.store(o.Binding, cached, works, d.Source)
	}
	return works, d.Source, nil
}

func plan(ctx context.Context, o Observed) Decision {
	defer kube.Span(&ctx, kube.StagePlan)()
	return Decide(o)
}

// reconcileDeleted deletes the Works of a binding that is being deleted, and removes its finalizer when no Work is left.
func (r *reconciler) reconcileDeleted(ctx context.Context, o Observed) error {
	r.written.delete(o.Binding.GetUID())
	if len(o.Works) == 0 {
		dependencies, err := model.ListDependencies(ctx, r.client, o.Binding)
		if err != nil || AwaitsDependencies(o.Binding, dependencies) {
			// Enqueued again when a dependency is gone.
			return err
		}
		return r.removeFinalizer(ctx, o.Binding)
	}
	kept, err := r.isTemplateKept(ctx, model.TemplateKeyOf(o.Binding))
	if err != nil {
		return err
	}
	if kept {
		o.Template = &unstructured.Unstructured{}
	}
	d := Decide(o)
	if err := r.reportProtected(ctx, o, d); err != nil {
		return err
	}
	if _, err = r.applyWorks(ctx, o, d); err != nil || !d.KeepsAll() {
		return err
	}
	return r.removeFinalizer(ctx, o.Binding)
}

// reconcileUnbound deletes the Works of a binding that is gone, if their template is gone as well, or has its binding elsewhere. As
// long as there is a template, its binding is created again, or the Works stay as the last policy has placed them.
func (r *reconciler) reconcileUnbound(ctx context.Context, binding client.ObjectKey, o Observed) error {
	works := sortedWorks(o.Works)
	if len(works) == 0 {
		return nil
	}
	// All of them have the same template.
	key, err := model.TemplateKeyOfWork(works[0])
	if err != nil {
		return err
	}
	kept, err := r.isTemplateKept(ctx, key)
	if err != nil {
		return err
	}
	if kept && slices.Contains(key.Bindings(), binding) {
		inForce, err := model.FindBinding(ctx, r.client, key)
		// It may have been created again since it was looked for.
		if err != nil || inForce == nil || client.ObjectKeyFromObject(inForce.Object) == binding {
			return err
		}
	}
	_, err = r.applyWorks(ctx, o, DecideUnbound(o.Works, kept))
	return err
}
