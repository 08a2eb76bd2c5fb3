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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
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
	if err := setupIndexes(ctx, mgr); err != nil {
		return err
	}
	works, bindings := newBell(), newBell()
	m := &members{secrets: mgr.GetAPIReader(), limits: limits, wrap: mgr.GetConfig().WrapTransport, known: map[string]*member{}}
	m.heard = func(cluster string, labels map[string]string) {
		if labels[LabelHub] == hub {
			works.ringFor(ctx, mgr.GetCache(), client.InNamespace(executionNamespace(cluster)), client.MatchingFields{byMark: labels[LabelWork]})
		}
	}
	back := func(cluster string) {
		works.ringFor(ctx, mgr.GetCache(), client.InNamespace(executionNamespace(cluster)))
	}
	detector, err := setupDetector(mgr, bindings.ring)
	if err != nil {
		return err
	}
	if err := setupReporter(mgr, detector.kinds); err != nil {
		return err
	}
	options := controller.Options{MaxConcurrentReconciles: atOnce, RateLimiter: patience[reconcile.Request]()}
	err = ctrl.NewControllerManagedBy(mgr).Named("adoption-binding").WithOptions(options).
		For(&workv1alpha2.ResourceBinding{}).
		Watches(&workv1alpha2.ClusterResourceBinding{}, &handler.EnqueueRequestForObject{}).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(bindingOf)).
		WatchesRawSource(source.Channel(bindings, &handler.EnqueueRequestForObject{})).
		Complete(calm[reconcile.Request]{&binder{
			client: mgr.GetClient(), templates: mgr.GetAPIReader(), version: detector.version, now: time.Now,
		}})
	if err != nil {
		return fmt.Errorf("watch ResourceBindings: %w", err)
	}
	undo := &undoing{client: mgr.GetClient(), reader: mgr.GetAPIReader()}
	options.RateLimiter = patience[reconcile.Request]()
	err = ctrl.NewControllerManagedBy(mgr).Named("adoption-work").WithOptions(options).
		For(&workv1alpha1.Work{}, builder.WithPredicates(specChanged)).
		WatchesRawSource(source.Channel(works, &handler.EnqueueRequestForObject{})).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(worksFor(mgr.GetCache())), builder.WithPredicates(reachableAgain)).
		Complete(calm[reconcile.Request]{&executor{client: mgr.GetClient(), members: m, hub: hub, undo: undo, now: time.Now}})
	if err != nil {
		return fmt.Errorf("watch Works: %w", err)
	}
	options.RateLimiter = patience[reconcile.Request]()
	err = ctrl.NewControllerManagedBy(mgr).Named("adoption-cluster").WithOptions(options).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(specChanged)).
		Complete(calm[reconcile.Request]{&harbourmaster{client: mgr.GetClient(), secrets: mgr.GetAPIReader(), members: m, now: time.Now, back: back}})
	if err != nil {
		return fmt.Errorf("watch Clusters: %w", err)
	}
	return nil
}

// worksFor finds the Works of a cluster.
func worksFor(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, cluster client.Object) []reconcile.Request {
		var list workv1alpha1.WorkList
		if err := reader.List(ctx, &list, client.InNamespace(executionNamespace(cluster.GetName())), client.UnsafeDisableDeepCopy); err != nil {
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

func setupIndexes(ctx context.Context, mgr ctrl.Manager) error {
	for index, of := range map[string]client.IndexerFunc{
		byBinding: func(o client.Object) []string { return []string{o.GetLabels()[LabelBinding]} },
		byMark:    func(o client.Object) []string { return []string{o.GetLabels()[LabelWork]} },
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, index, of); err != nil {
			return fmt.Errorf("index Works: %w", err)
		}
	}
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		for index, of := range map[string]client.IndexerFunc{byClaim: claimIndex, byRequirer: requirerIndex} {
			if err := mgr.GetFieldIndexer().IndexField(ctx, kind, index, of); err != nil {
				return fmt.Errorf("index bindings: %w", err)
			}
		}
	}
	return nil
}

// patience is how long failures are waited out: nobody who has mended something should wait for minutes.
func patience[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](100*time.Millisecond, 10*time.Second)
}

// reportPause is how long news of bindings gather, so that a thousand resources do not cost a thousand writes.
const reportPause = time.Second

func setupReporter(mgr ctrl.Manager, kinds *kinds) error {
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
		For(&policyv1alpha1.PropagationPolicy{}, builder.WithPredicates(asked)).
		Watches(&policyv1alpha1.ClusterPropagationPolicy{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(asked)).
		Watches(&workv1alpha2.ResourceBinding{}, claimants).
		Watches(&workv1alpha2.ClusterResourceBinding{}, claimants).
		Complete(calm[reconcile.Request]{&reporter{
			client: mgr.GetClient(), kinds: kinds, recorder: mgr.GetEventRecorder("fairlead.dev/" + Name), now: time.Now,
		}})
	if err != nil {
		return fmt.Errorf("watch policies: %w", err)
	}
	return nil
}

// byMark is the index of Works by what is on what they have made.
const byMark = "mark"

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

// hubID tells this hub from all others: the UID of its namespace kube-system.
func hubID(ctx context.Context, reader client.Reader) (string, error) {
	system := metadataOf(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("find out which hub this is: %w", err)
	}
	return string(system.UID), nil
}
