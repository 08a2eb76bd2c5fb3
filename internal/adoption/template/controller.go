// Package template brings templates, the resources of the hub that policies select, to bindings.
package template

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/kube"
)

// Setup adds the controller that reconciles a template when the template, its binding, a policy or a cluster changes.
func Setup(mgr ctrl.Manager, changed func(client.ObjectKey)) (*Reconciler, error) {
	metadata, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of templates: %w", err)
	}
	if err := mgr.Add(metadata); err != nil {
		return nil, fmt.Errorf("add the cache of templates: %w", err)
	}
	k := newWatchedKinds(mgr.GetRESTMapper(), mgr.GetAPIReader(), clock.RealClock{})
	d := &Reconciler{client: mgr.GetClient(), metadata: metadata, templates: mgr.GetAPIReader(), Kinds: k, enqueueBinding: changed, recorder: mgr.GetEventRecorder("fairlead.dev/" + model.Passage)}
	templates, err := controller.NewTyped("adoption-template", mgr, controller.TypedOptions[model.TemplateKey]{
		Reconciler: kube.Traced("adoption-template", kube.RequeueOnConflict[model.TemplateKey]{TypedReconciler: d}), MaxConcurrentReconciles: model.MaxConcurrent, RateLimiter: kube.RateLimiter[model.TemplateKey](),
	})
	if err != nil {
		return nil, fmt.Errorf("watch templates: %w", err)
	}
	// A controller that starts holds its lock until its sources have synced, and Watch would wait for that.
	k.watch = limitStarts(model.MaxConcurrent, func(kind schema.GroupVersionKind) {
		k.recordStarted(kind)
		err := templates.Watch(source.TypedKind(metadata, model.NewMetadata(kind),
			handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, o *metav1.PartialObjectMetadata) []model.TemplateKey {
				return []model.TemplateKey{{Kind: kind, ObjectKey: client.ObjectKeyFromObject(o)}}
			}), templateChanged))
		if err != nil {
			mgr.GetLogger().Error(err, "watch templates", "kind", kind.String())
			return
		}
		// The next kind waits for this one, but not for an API server that does not answer.
		ctx, cancel := context.WithTimeout(context.Background(), kindTimeout)
		defer cancel()
		_, _ = metadata.GetInformer(ctx, model.NewMetadata(kind))
	})
	for _, s := range d.sources(mgr.GetCache()) {
		if err := templates.Watch(s); err != nil {
			return nil, fmt.Errorf("watch policies: %w", err)
		}
	}
	return d, nil
}

func (d *Reconciler) sources(from cache.Cache) []source.TypedSource[model.TemplateKey] {
	templatesOfPolicy := func(ctx context.Context, object client.Object) []model.TemplateKey {
		return d.templatesOf(ctx, policy.Of(object))
	}
	return []source.TypedSource[model.TemplateKey]{
		source.TypedKind(from, client.Object(&policyv1alpha1.PropagationPolicy{}), handler.TypedEnqueueRequestsFromMapFunc(templatesOfPolicy), policy.RequestChanged),
		source.TypedKind(from, client.Object(&policyv1alpha1.ClusterPropagationPolicy{}), handler.TypedEnqueueRequestsFromMapFunc(templatesOfPolicy), policy.RequestChanged),
		source.TypedKind(from, client.Object(&clusterv1alpha1.Cluster{}), handler.TypedEnqueueRequestsFromMapFunc(d.allTemplates), placementChanged),
		source.TypedKind(from, client.Object(&clusterv1alpha1.Cluster{}), handler.TypedEnqueueRequestsFromMapFunc(d.waitingTemplates), roomChanged),
		source.TypedKind(from, client.Object(&workv1alpha2.ResourceBinding{}), d.bindingEvents()),
		source.TypedKind(from, client.Object(&workv1alpha2.ClusterResourceBinding{}), d.bindingEvents()),
	}
}

// allTemplates are the templates of all policies.
func (d *Reconciler) allTemplates(ctx context.Context, _ client.Object) []model.TemplateKey {
	policies, err := policy.List(ctx, d.client)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list policies")
		return nil
	}
	var all []model.TemplateKey
	for _, p := range policies {
		all = append(all, d.templatesOf(ctx, p)...)
	}
	return all
}

// waitingTemplates are those with replicas that clusters had no room for.
func (d *Reconciler) waitingTemplates(ctx context.Context, _ client.Object) []model.TemplateKey {
	waiting, err := model.ListWaiting(ctx, d.client)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the bindings that wait for room")
		return nil
	}
	var all []model.TemplateKey
	for _, b := range waiting {
		all = append(all, model.TemplateKeyOf(b))
	}
	return all
}

// bindingEvents enqueues the templates of bindings that exist when the operator starts, because their templates may have been
// deleted meanwhile, and of bindings that another client has changed or deleted. Of one that is gone, those that require its
// template are enqueued too: it is their dependency again.
func (d *Reconciler) bindingEvents() handler.TypedEventHandler[client.Object, model.TemplateKey] {
	type queue = workqueue.TypedRateLimitingInterface[model.TemplateKey]
	return handler.TypedFuncs[client.Object, model.TemplateKey]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], q queue) {
			if e.IsInInitialList {
				q.Add(model.TemplateKeyOf(model.AsBinding(e.Object)))
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[client.Object], q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() && e.ObjectNew.GetDeletionTimestamp() == nil {
				q.Add(model.TemplateKeyOf(model.AsBinding(e.ObjectNew)))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[client.Object], q queue) {
			b := model.AsBinding(e.Object)
			q.Add(model.TemplateKeyOf(b))
			for _, r := range b.Spec.RequiredBy {
				if by, err := model.GetBinding(ctx, d.client, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}); err == nil && by != nil {
					q.Add(model.TemplateKeyOf(by))
				}
			}
		},
	}
}

// placementChanged selects changes of a cluster that placements depend on.
var placementChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(memberOf(e.ObjectOld), memberOf(e.ObjectNew))
	},
}

// roomChanged selects changes of a cluster that only templates depend on with replicas that wait for room.
var roomChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := membersOf(e.ObjectOld), membersOf(e.ObjectNew)
		return len(before) == 1 && len(after) == 1 && (before[0].Ready != after[0].Ready || !equality.Semantic.DeepEqual(before[0].Room, after[0].Room))
	},
}

// memberOf is the part of a cluster that placements select by; none, if resources cannot go there. Its room is left out: replicas
// that are placed do not follow it.
func memberOf(cluster client.Object) []policy.Member {
	all := membersOf(cluster)
	for i := range all {
		all[i].Room, all[i].Ready = nil, false
	}
	return all
}

func membersOf(cluster client.Object) []policy.Member {
	c, ok := cluster.(*clusterv1alpha1.Cluster)
	if !ok {
		return nil
	}
	return policy.MembersOf([]clusterv1alpha1.Cluster{*c})
}

// templateChanged leaves out changes of the status, for kinds with a generation.
var templateChanged = predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
	UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
		a, b := e.ObjectOld, e.ObjectNew
		return b.Generation == 0 || a.Generation != b.Generation || a.UID != b.UID || b.DeletionTimestamp != nil ||
			!maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Annotations, b.Annotations)
	},
}

// Reconciler brings every template to the binding that its policy asks for.
type Reconciler struct {
	client client.Client
	// metadata is a cache of the kinds that policies select; templates reads from the API server.
	metadata  cache.Cache
	templates client.Reader
	Kinds     *watchedKinds
	// enqueueBinding is called with a binding that stays as it is while its template may have changed.
	enqueueBinding func(binding client.ObjectKey)
	recorder       events.EventRecorder
}

// Reconcile brings one resource to its binding.
func (d *Reconciler) Reconcile(ctx context.Context, key model.TemplateKey) (reconcile.Result, error) {
	have, err := model.FindBinding(ctx, d.client, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := d.Kinds.watchKind(ctx, key.Kind); err != nil {
		// Whether the template exists is unknown.
		return reconcile.Result{RequeueAfter: policy.KindRetryInterval}, nil
	}
	metadata := model.NewMetadata(key.Kind)
	err = d.metadata.Get(ctx, key.ObjectKey, metadata)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	o := Observed{Template: model.TemplateOf(metadata), Exists: err == nil && metadata.DeletionTimestamp == nil, Binding: have}
	if o.Exists || have != nil {
		if o.Policies, err = policy.List(ctx, d.client); err != nil {
			return reconcile.Result{}, err
		}
	}
	decision := Decide(o)
	if DependsOnNamespace(o, decision) {
		if o.NamespaceDeleted, err = model.IsNamespaceDeleted(ctx, d.templates, key.Namespace); err != nil {
			return reconcile.Result{}, err
		}
		decision = Decide(o)
	}
	switch decision.Action {
	case model.ActionNone:
		if !o.Exists && have == nil {
			// Somebody may have deleted the binding before, and its Works are left.
			for _, binding := range key.Bindings() {
				d.enqueueBinding(binding)
			}
		}
	case model.ActionDelete, model.ActionRestore, model.ActionOrphan:
		return reconcile.Result{}, d.releaseBinding(ctx, have, decision)
	case model.ActionKeep:
		d.enqueueBinding(client.ObjectKeyFromObject(have.Object))
	case model.ActionApply:
		return d.applyClaimed(ctx, key, o.Template, metadata.UID, decision.Policy, have)
	}
	return reconcile.Result{}, nil
}
