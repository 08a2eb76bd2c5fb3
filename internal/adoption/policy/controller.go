package policy

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
)

// gatherInterval is how long changes of bindings are collected, so that a thousand resources do not cost a thousand writes.
const gatherInterval = time.Second

func Setup(mgr ctrl.Manager, kindError func(context.Context, *Policy) error) error {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(ctx context.Context, q queue, bindings ...client.Object) {
		for _, b := range bindings {
			for _, key := range reportingPolicies(ctx, mgr.GetClient(), model.AsBinding(b)) {
				q.AddAfter(reconcile.Request{NamespacedName: key}, gatherInterval)
			}
		}
	}
	claimants := handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, q, e.Object) },
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("adoption-policy").
		For(&policyv1alpha1.PropagationPolicy{}, builder.WithPredicates(RequestChanged)).
		Watches(&policyv1alpha1.ClusterPropagationPolicy{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(RequestChanged)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cluster client.Object) []reconcile.Request {
			return policiesNaming(ctx, mgr.GetClient(), cluster.GetName())
		}), builder.WithPredicates(joinedOrLeft)).
		Watches(&workv1alpha2.ResourceBinding{}, claimants).
		Watches(&workv1alpha2.ClusterResourceBinding{}, claimants).
		Complete(kube.Traced("adoption-policy", kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: &reconciler{
			client: mgr.GetClient(), kindError: kindError, recorder: mgr.GetEventRecorder("fairlead.dev/" + model.Passage), now: time.Now,
		}}))
	if err != nil {
		return fmt.Errorf("watch policies: %w", err)
	}
	return nil
}

// reportingPolicies are the policies whose status counts a binding: the policy that takes its template, and the policies of the
// templates that require its template. A binding that cannot be read is gone, and its own event enqueues its policy.
func reportingPolicies(ctx context.Context, reader client.Reader, b *model.Binding) []model.PolicyKey {
	claims := []model.PolicyKey{model.ClaimOf(b)}
	for _, r := range b.Spec.RequiredBy {
		if by, err := model.GetBinding(ctx, reader, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}); err == nil {
			claims = append(claims, model.ClaimOf(by))
		}
	}
	return slices.DeleteFunc(claims, func(key model.PolicyKey) bool { return key == model.PolicyKey{} })
}

// policiesNaming are the policies that ask for a cluster by name, and so report whether it has joined. A list that fails is logged:
// event handlers have no way to retry.
func policiesNaming(ctx context.Context, reader client.Reader, cluster string) []reconcile.Request {
	policies, err := List(ctx, reader)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list policies")
		return nil
	}
	var all []reconcile.Request
	for _, p := range policies {
		if namedClusters(p.Spec.Placement).Has(cluster) {
			all = append(all, reconcile.Request{NamespacedName: p.Key()})
		}
	}
	return all
}

// joinedOrLeft selects changes of a cluster after which it is a member, or no longer.
var joinedOrLeft = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	},
}

// KindRetryInterval is how often a kind that could not be watched is retried.
const KindRetryInterval = 20 * time.Second

// RequestChanged selects changes by users, who write the spec and annotations of a policy.
var RequestChanged = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})

// reconciler reports the states of bindings on their policies.
type reconciler struct {
	client client.Client
	// kindError is why a kind that a policy selects cannot be watched.
	kindError func(context.Context, *Policy) error
	recorder  events.EventRecorder
	now       func() time.Time
}

// Reconcile reports one policy: of the cluster, if it is in no namespace.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object client.Object = &policyv1alpha1.PropagationPolicy{}
	if request.Namespace == "" {
		object = &policyv1alpha1.ClusterPropagationPolicy{}
	}
	object, err := kube.GetIfExists(ctx, r.client, request.NamespacedName, object)
	if err != nil {
		return ctrl.Result{}, err
	}
	if object == nil {
		deleteMetrics(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	policy := Of(object)
	bindings, err := r.bindings(ctx, policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	var clusters clusterv1alpha1.ClusterList
	if err := r.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list Clusters: %w", err)
	}
	t := Count(policy, bindings, MembersOf(clusters.Items))
	t.kindError = r.kindError(ctx, policy)
	recordMetrics(request.NamespacedName, t.PropagationStatus, t.pending)
	next := t.PropagationStatus
	next.Conditions = slices.Clone(policy.Status.Conditions)
	next.ObservedGeneration = policy.Generation
	is, reason := t.Condition(policy)
	model.SetCondition(&next.Conditions, policyv1alpha1.ConditionReady, is, reason, policy.Generation, r.now())
	if unsupported := policy.Unsupported(); unsupported != nil && !policy.Aborted {
		model.SetCondition(&next.Conditions, policyv1alpha1.ConditionScheduled, metav1.ConditionFalse, *unsupported, policy.Generation, r.now())
	} else {
		meta.RemoveStatusCondition(&next.Conditions, policyv1alpha1.ConditionScheduled)
	}
	var result ctrl.Result
	if t.kindError != nil {
		result.RequeueAfter = KindRetryInterval
	}
	if equality.Semantic.DeepEqual(*policy.Status, next) {
		return result, nil
	}
	previous := meta.FindStatusCondition(policy.Status.Conditions, policyv1alpha1.ConditionReady)
	kind := policyv1alpha1.GroupVersion.WithKind(policy.Object().Kind)
	if err := kube.ApplyStatusPart(ctx, r.client, kind, object, next, next, model.FieldOwner); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if needsEvent(previous, is, reason) {
		severity := corev1.EventTypeNormal
		if is == metav1.ConditionFalse {
			severity = corev1.EventTypeWarning
		}
		r.recorder.Eventf(object, nil, severity, string(reason.Code), "Propagate", "%s", reason.Message)
	}
	return result, nil
}

// bindings are those of the templates that a policy takes, and of their dependencies.
func (r *reconciler) bindings(ctx context.Context, policy *Policy) ([]*model.Binding, error) {
	all, err := model.ListClaimed(ctx, r.client, policy.Key())
	if err != nil || !policy.MayPropagateDeps() {
		return all, err
	}
	included := map[string]bool{}
	for _, b := range all {
		included[b.String()] = true
	}
	for _, b := range slices.Clone(all) {
		needed, err := model.ListDependencies(ctx, r.client, b)
		if err != nil {
			return nil, err
		}
		for _, n := range needed {
			if !included[n.String()] {
				included[n.String()] = true
				all = append(all, n)
			}
		}
	}
	return all, nil
}
