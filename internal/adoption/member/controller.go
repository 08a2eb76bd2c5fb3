package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// Setup adds the controller that connects to members. OnReconnect is called with a cluster that has a new client, and enqueueWork
// with a Work that is to be compared with its object. UsesCapacity tells whether a policy needs to know the room of clusters.
func Setup(mgr ctrl.Manager, m *Clients, onReconnect func(cluster string), enqueueWork func(client.ObjectKey), usesCapacity func(context.Context) (bool, error)) error {
	enqueued := kube.NewEnqueuer()
	m.Rechecks.OnFinished = func(cluster string) { enqueued.Enqueue(client.ObjectKey{Name: cluster}) }
	err := ctrl.NewControllerManagedBy(mgr).Named("adoption-cluster").
		WithOptions(options()).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(model.SpecChanged)).
		WatchesRawSource(source.Channel(enqueued, &handler.EnqueueRequestForObject{})).
		Watches(&policyv1alpha1.PropagationPolicy{}, allClusters(mgr.GetClient()), builder.WithPredicates(roomRequested)).
		Watches(&policyv1alpha1.ClusterPropagationPolicy{}, allClusters(mgr.GetClient()), builder.WithPredicates(roomRequested)).
		Complete(kube.Traced("adoption-cluster", kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: &reconciler{
			client: mgr.GetClient(), secrets: mgr.GetAPIReader(), members: m, now: time.Now, onReconnect: onReconnect, enqueueWork: enqueueWork,
			usesCapacity: usesCapacity, readCapacity: func(ctx context.Context, m *Client) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary, error) {
				return m.Capacity(ctx)
			},
		}}))
	if err != nil {
		return fmt.Errorf("watch Clusters: %w", err)
	}
	return nil
}

func options() controller.Options {
	return controller.Options{MaxConcurrentReconciles: model.MaxClusters, RateLimiter: kube.RateLimiter[reconcile.Request]()}
}

// allClusters enqueues every Cluster.
func allClusters(reader client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		var clusters clusterv1alpha1.ClusterList
		if err := reader.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list Clusters")
			return nil
		}
		var all []reconcile.Request
		for i := range clusters.Items {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters.Items[i])})
		}
		return all
	})
}

// roomRequested selects policies that begin to divide replicas by the room of clusters.
var roomRequested = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return dividesByRoom(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return dividesByRoom(e.ObjectNew) && !dividesByRoom(e.ObjectOld) },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

func dividesByRoom(object client.Object) bool {
	switch p := object.(type) {
	case *policyv1alpha1.PropagationPolicy:
		return p.Spec.Placement.DividesByRoom()
	case *policyv1alpha1.ClusterPropagationPolicy:
		return p.Spec.Placement.DividesByRoom()
	}
	return false
}

// How often clusters are asked whether they serve, and how long they may take to answer.
const (
	checkInterval = 10 * time.Second
	checkTimeout  = 5 * time.Second
)

// reconciler keeps the clients of clusters, and reports whether they can be reached.
type reconciler struct {
	client  client.Client
	secrets client.Reader
	members *Clients
	now     func() time.Time
	// onReconnect is called with a cluster that has a new client.
	onReconnect func(cluster string)
	// enqueueWork is called with a Work that is to be compared with its object.
	enqueueWork func(client.ObjectKey)
	// usesCapacity tells whether a policy needs to know the room of clusters, and readCapacity finds it.
	usesCapacity func(context.Context) (bool, error)
	readCapacity func(context.Context, *Client) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary, error)
}

// Reconcile connects to one cluster, and checks its health.
func (h *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var c clusterv1alpha1.Cluster
	if err := h.client.Get(ctx, request.NamespacedName, &c); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if err != nil {
		h.members.Disconnect(request.Name)
		h.members.Rechecks.forget(request.Name)
		deleteMetrics(request.Name)
		return ctrl.Result{}, nil
	}
	if c.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(&c, model.FinalizerCluster) {
		if err := h.client.Update(ctx, &c, client.FieldOwner(model.FieldOwner)); err != nil {
			return ctrl.Result{}, fmt.Errorf("add the finalizer of Cluster %s: %w", c.Name, err)
		}
	}
	if !c.DeletionTimestamp.IsZero() {
		// Before connecting: a cluster that does not answer is not asked when it need not release anything.
		result, err := h.unjoin(ctx, &c)
		if err != nil || result.RequeueAfter == 0 || model.IsAbandoned(&c) {
			return result, err
		}
	}
	before := h.members.Get(c.Name)
	if before == nil && c.DeletionTimestamp.IsZero() {
		if err := h.createExecutionNamespace(ctx, c.Name); err != nil {
			return ctrl.Result{}, err
		}
	}
	version, err := h.checkHealth(ctx, &c)
	status := *c.Status.DeepCopy()
	status.ObservedGeneration = c.Generation
	is, reason := metav1.ConditionFalse, passage.Because(model.ReasonUnreachable, "%s does not respond as expected: %v", c.Spec.APIEndpoint, err)
	switch {
	case err == nil:
		is, reason, status.KubernetesVersion = metav1.ConditionTrue, passage.Because(model.ReasonReady, "the API server responds"), version
	case errors.As(err, new(*unsupportedFieldError)):
		// A connection from before the field was set is not used any more.
		h.members.Disconnect(c.Name)
		reason = passage.Because(model.ReasonUnsupported, "%v", err)
	case errors.Is(err, errUnauthorized):
		reason = passage.Because(model.ReasonUnauthorized, "%s does not accept the token: the token has expired, or was revoked; "+
			"`fairlead join %s --member-kubeconfig FILE` gets a new one", c.Spec.APIEndpoint, c.Name)
	}
	wasReady := meta.IsStatusConditionTrue(status.Conditions, clusterv1alpha1.ConditionReady)
	model.SetCondition(&status.Conditions, clusterv1alpha1.ConditionReady, is, reason, c.Generation, h.now())
	recordReady(c.Name, err == nil)
	if err == nil {
		if err := h.startRecheck(ctx, &c, wasReady); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err == nil && c.DeletionTimestamp.IsZero() {
		if err := h.reportCapacity(ctx, &c, &status); err != nil {
			return ctrl.Result{}, err
		}
	}
	_, left := h.members.Rechecks.state(c.Name)
	synced, why := syncedCondition(c.Name, err == nil, len(left) > 0)
	model.SetCondition(&status.Conditions, clusterv1alpha1.ConditionSynced, synced, why, c.Generation, h.now())
	if err == nil && wasReady {
		// Before the status is written: after a conflict the client is no longer a new one.
		if before != h.members.Get(c.Name) {
			h.onReconnect(c.Name)
		}
		for _, work := range left {
			h.enqueueWork(work)
		}
	}
	if !equality.Semantic.DeepEqual(c.Status, status) {
		kind := clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ClusterKind)
		if err := kube.ApplyStatusPart(ctx, h.client, kind, &c, status, status, model.FieldOwner); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	if !c.DeletionTimestamp.IsZero() {
		return ctrl.Result{RequeueAfter: unjoinInterval}, nil
	}
	if err == nil {
		if err := h.renewToken(ctx, &c); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "renew the token of a cluster", "cluster", c.Name)
		}
	}
	return ctrl.Result{RequeueAfter: checkInterval}, nil
}

// startRecheck has all Works of a cluster that can be reached again compared with their objects. The first look at a Cluster whose
// condition Synced is not true starts that, too: an earlier operator has not come to the end of it.
func (h *reconciler) startRecheck(ctx context.Context, c *clusterv1alpha1.Cluster, wasReady bool) error {
	started, _ := h.members.Rechecks.state(c.Name)
	if !c.DeletionTimestamp.IsZero() || wasReady && (started || meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionSynced)) {
		return nil
	}
	var works workv1alpha1.WorkList
	if err := h.client.List(ctx, &works, client.InNamespace(model.ExecutionNamespace(c.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the Works of cluster %s: %w", c.Name, err)
	}
	var keys []client.ObjectKey
	for i := range works.Items {
		keys = append(keys, client.ObjectKeyFromObject(&works.Items[i]))
	}
	h.members.Rechecks.Start(c.Name, keys)
	return nil
}

// syncedCondition is the condition Synced of a cluster: whether all of its objects were compared with their Works since it can be
// reached.
func syncedCondition(cluster string, ready, left bool) (metav1.ConditionStatus, passage.Reason) {
	switch {
	case !ready:
		return metav1.ConditionUnknown, passage.Because(model.ReasonUnreachable, "cluster %s cannot be reached", cluster)
	case left:
		return metav1.ConditionFalse, model.CheckingReason(cluster)
	}
	return metav1.ConditionTrue, passage.Because(model.ReasonChecked, "the objects in cluster %s were compared with their Works since the cluster can be reached", cluster)
}

// createExecutionNamespace for the Works of a cluster that did not join by the command.
func (h *reconciler) createExecutionNamespace(ctx context.Context, cluster string) error {
	kind := corev1.SchemeGroupVersion.WithKind("Namespace")
	// Unstructured, because the operator's scheme has only the kinds that passages keep in memory.
	namespace, there := &unstructured.Unstructured{}, model.NewMetadata(kind)
	namespace.SetGroupVersionKind(kind)
	namespace.SetName(model.ExecutionNamespace(cluster))
	if err := h.secrets.Get(ctx, client.ObjectKeyFromObject(namespace), there); err == nil {
		return nil
	}
	if err := h.client.Create(ctx, namespace, client.FieldOwner(model.FieldOwner)); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create namespace %s: %w", namespace.GetName(), err)
	}
	return nil
}

// unjoinInterval is how often the remaining Works of a leaving cluster are checked.
const unjoinInterval = time.Second

// unjoin deletes the Works of a leaving cluster, and then removes the finalizer.
func (h *reconciler) unjoin(ctx context.Context, c *clusterv1alpha1.Cluster) (ctrl.Result, error) {
	var works workv1alpha1.WorkList
	if err := h.client.List(ctx, &works, client.InNamespace(model.ExecutionNamespace(c.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the Works of cluster %s: %w", c.Name, err)
	}
	for i := range works.Items {
		w := &works.Items[i]
		if !w.DeletionTimestamp.IsZero() {
			continue
		}
		if err := h.client.Delete(ctx, w, client.Preconditions{UID: &w.UID}); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("delete Work %s/%s: %w", w.Namespace, w.Name, err)
		}
	}
	if len(works.Items) > 0 {
		h.onReconnect(c.Name)
		return ctrl.Result{RequeueAfter: unjoinInterval}, nil
	}
	if err := kube.RemoveFinalizer(ctx, h.client, c, model.FinalizerCluster, model.FieldOwner); err != nil {
		return ctrl.Result{}, fmt.Errorf("remove the finalizer of Cluster %s: %w", c.Name, err)
	}
	h.members.Disconnect(c.Name)
	return ctrl.Result{}, nil
}

func (h *reconciler) checkHealth(ctx context.Context, c *clusterv1alpha1.Cluster) (string, error) {
	m, err := h.members.Connect(ctx, c)
	if err != nil {
		return "", err
	}
	return checkServing(ctx, m.Config)
}
