// Package adoption is the passage that takes what already runs in clusters under the management of a hub: a policy selects
// resources of the hub and the clusters that they go to, and what these clusters run already is taken over without a restart,
// if somebody asks for that.
package adoption

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// Name of the passage.
const Name = "adoption"

// atOnce is how many bindings, and how many Works, are looked at at the same time.
const atOnce = 8

// Caches are the kinds that the passage reads from the manager's cache.
func Caches() []client.Object {
	return []client.Object{
		&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{}, &workv1alpha2.ResourceBinding{},
		&workv1alpha2.ClusterResourceBinding{}, &workv1alpha1.Work{}, &clusterv1alpha1.Cluster{},
	}
}

// Setup adds the passage to the manager.
func Setup(mgr ctrl.Manager, limits Limits) error {
	ctx := context.Background()
	hub, err := hubID(ctx, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	for index, of := range map[string]func(client.Object) []string{
		byBinding: func(o client.Object) []string { return []string{o.GetLabels()[LabelBinding]} },
		byUID:     func(o client.Object) []string { return []string{string(o.GetUID())} },
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, index, of); err != nil {
			return fmt.Errorf("index Works: %w", err)
		}
	}
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind, byClaim, claimIndex); err != nil {
			return fmt.Errorf("index bindings: %w", err)
		}
	}
	works := make(chan event.GenericEvent, 1024)
	news := func(key types.NamespacedName) {
		works <- event.GenericEvent{Object: &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}}
	}
	m := &members{secrets: mgr.GetAPIReader(), limits: limits, known: map[string]*member{}}
	m.heard = func(labels map[string]string) {
		if labels[LabelHub] != hub {
			return
		}
		var list workv1alpha1.WorkList
		if err := mgr.GetCache().List(ctx, &list, client.MatchingFields{byUID: labels[LabelWork]}, client.UnsafeDisableDeepCopy); err != nil {
			return
		}
		for i := range list.Items {
			news(client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	back := func(cluster string) {
		var list workv1alpha1.WorkList
		if err := mgr.GetCache().List(ctx, &list, client.InNamespace(executionNamespace(cluster)), client.UnsafeDisableDeepCopy); err != nil {
			return
		}
		for i := range list.Items {
			news(client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	if err := setupDetector(mgr); err != nil {
		return err
	}
	if err := setupReporter(mgr); err != nil {
		return err
	}
	options := controller.Options{MaxConcurrentReconciles: atOnce}
	err = ctrl.NewControllerManagedBy(mgr).Named("adoption-binding").WithOptions(options).
		For(&workv1alpha2.ResourceBinding{}).
		Watches(&workv1alpha2.ClusterResourceBinding{}, &handler.EnqueueRequestForObject{}).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(bindingOf)).
		Complete(&binder{client: mgr.GetClient(), templates: mgr.GetAPIReader(), now: time.Now})
	if err != nil {
		return fmt.Errorf("watch ResourceBindings: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("adoption-work").WithOptions(options).
		For(&workv1alpha1.Work{}, builder.WithPredicates(specChanged)).
		WatchesRawSource(source.Channel(works, &handler.EnqueueRequestForObject{})).
		Complete(&executor{client: mgr.GetClient(), members: m, hub: hub, now: time.Now})
	if err != nil {
		return fmt.Errorf("watch Works: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("adoption-cluster").WithOptions(options).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(specChanged)).
		Complete(&harbourmaster{client: mgr.GetClient(), members: m, now: time.Now, back: back})
	if err != nil {
		return fmt.Errorf("watch Clusters: %w", err)
	}
	return nil
}

// reportPause is how long news of bindings gather, so that a thousand resources do not cost a thousand writes.
const reportPause = time.Second

func setupReporter(mgr ctrl.Manager) error {
	claimants := handler.Funcs{}
	tell := func(object client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if key := claimOf(bindingIn(object)); key != (Key{}) {
			queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Name}}, reportPause)
		}
	}
	claimants.CreateFunc = func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		tell(e.Object, q)
	}
	claimants.UpdateFunc = func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		tell(e.ObjectOld, q)
		tell(e.ObjectNew, q)
	}
	claimants.DeleteFunc = func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		tell(e.Object, q)
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("adoption-policy").
		For(&policyv1alpha1.PropagationPolicy{}, builder.WithPredicates(specChanged)).
		Watches(&policyv1alpha1.ClusterPropagationPolicy{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(specChanged)).
		Watches(&workv1alpha2.ResourceBinding{}, claimants).
		Watches(&workv1alpha2.ClusterResourceBinding{}, claimants).
		Complete(&reporter{client: mgr.GetClient(), now: time.Now})
	if err != nil {
		return fmt.Errorf("watch policies: %w", err)
	}
	return nil
}

// byUID is the index of Works by their own UID, which is on what they have made.
const byUID = "uid"

func bindingOf(_ context.Context, work client.Object) []reconcile.Request {
	path := work.GetAnnotations()[AnnotationBinding]
	namespace, name, found := strings.Cut(path, "/")
	switch {
	case path == "":
		return nil
	case !found:
		namespace, name = "", path
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

func setupDetector(mgr ctrl.Manager) error {
	metadata, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return fmt.Errorf("create a cache of what policies select: %w", err)
	}
	if err := mgr.Add(metadata); err != nil {
		return fmt.Errorf("add the cache of what policies select: %w", err)
	}
	d := &detector{client: mgr.GetClient(), metadata: metadata, full: mgr.GetAPIReader(), followed: map[schema.GroupVersionKind]bool{}}
	concerned := func(ctx context.Context, p *Policy) []templateKey {
		if err := d.follow(ctx, p); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "follow what a policy selects", "policy", p.Name)
			return nil
		}
		all, err := d.concerned(ctx, p)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "find what a policy selects", "policy", p.Name)
		}
		return all
	}
	d.controller, err = controller.NewTyped("adoption-detector", mgr, controller.TypedOptions[templateKey]{
		Reconciler: d, MaxConcurrentReconciles: atOnce,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[templateKey](100*time.Millisecond, 10*time.Second),
	})
	if err != nil {
		return fmt.Errorf("watch what policies select: %w", err)
	}
	sources := []source.TypedSource[templateKey]{
		source.TypedKind(mgr.GetCache(), &policyv1alpha1.PropagationPolicy{},
			handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, p *policyv1alpha1.PropagationPolicy) []templateKey {
				return concerned(ctx, &Policy{Namespace: p.Namespace, Name: p.Name, Spec: p.Spec})
			})),
		source.TypedKind(mgr.GetCache(), &policyv1alpha1.ClusterPropagationPolicy{},
			handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, p *policyv1alpha1.ClusterPropagationPolicy) []templateKey {
				return concerned(ctx, &Policy{Name: p.Name, Spec: p.Spec})
			})),
		source.TypedKind(mgr.GetCache(), &clusterv1alpha1.Cluster{},
			handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, _ *clusterv1alpha1.Cluster) []templateKey {
				policies, err := d.policies(ctx)
				if err != nil {
					return nil
				}
				var all []templateKey
				for _, p := range policies {
					all = append(all, concerned(ctx, p)...)
				}
				return all
			})),
	}
	for _, s := range sources {
		if err := d.controller.Watch(s); err != nil {
			return fmt.Errorf("watch policies: %w", err)
		}
	}
	return nil
}

// hubID tells this hub from all others: the UID of its namespace kube-system.
func hubID(ctx context.Context, reader client.Reader) (string, error) {
	system := metadataOf(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("find out which hub this is: %w", err)
	}
	return string(system.UID), nil
}
