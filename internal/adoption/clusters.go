package adoption

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// How often clusters are asked whether they serve, and how long they may take to answer.
const (
	askEvery      = 10 * time.Second
	answerTimeout = 5 * time.Second
)

// The reasons of the condition Ready of a Cluster.
const (
	ReasonReady        passage.Code = "ClusterReady"
	ReasonUnreachable  passage.Code = "ClusterNotReachable"
	ReasonUnauthorized passage.Code = "ClusterTokenRefused"
)

// What people, and `fairlead unjoin`, say about a Cluster that is being deleted.
const (
	// AnnotationDeleteResources set to "true" has all that Fairlead manages in the cluster deleted.
	AnnotationDeleteResources = "fairlead.dev/delete-resources"
	// AnnotationAbandon set to "true" has the cluster left as it is, marks and all, for it cannot be reached.
	AnnotationAbandon = "fairlead.dev/abandon"
)

// FinalizerCluster keeps a Cluster until all of its Works are gone.
const FinalizerCluster = "fairlead.dev/cluster"

func abandoned(c *clusterv1alpha1.Cluster) bool {
	return c.DeletionTimestamp != nil && c.Annotations[AnnotationAbandon] == "true"
}

// harbourmaster keeps the connections to clusters, and tells whether they can be reached.
type harbourmaster struct {
	client  client.Client
	secrets client.Reader
	members *members
	now     func() time.Time
	// back is called with a cluster that is reached in another way.
	back func(cluster string)
}

// Reconcile looks at one cluster.
func (h *harbourmaster) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var c clusterv1alpha1.Cluster
	if err := h.client.Get(ctx, request.NamespacedName, &c); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if err != nil {
		h.members.forget(request.Name)
		unmeasureCluster(request.Name)
		return ctrl.Result{}, nil
	}
	if c.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(&c, FinalizerCluster) {
		if err := h.client.Update(ctx, &c, client.FieldOwner(FieldOwner)); err != nil {
			return ctrl.Result{}, fmt.Errorf("keep Cluster %s until its Works are gone: %w", c.Name, err)
		}
	}
	before := h.members.get(c.Name)
	if before == nil && c.DeletionTimestamp.IsZero() {
		if err := h.makeRoom(ctx, c.Name); err != nil {
			return ctrl.Result{}, err
		}
	}
	version, err := h.ask(ctx, &c)
	status := *c.Status.DeepCopy()
	status.ObservedGeneration = c.Generation
	condition := metav1.Condition{
		Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: string(ReasonReady),
		Message: "its API server answers", ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(h.now()),
	}
	if err != nil {
		condition.Status, condition.Reason = metav1.ConditionFalse, string(ReasonUnreachable)
		condition.Message = fmt.Sprintf("%s does not answer as it should: %v", c.Spec.APIEndpoint, err)
		if errors.Is(err, errUnauthorized) {
			condition.Reason = string(ReasonUnauthorized)
			condition.Message = fmt.Sprintf("%s does not accept the token: it has expired, or was taken back; `fairlead join %s --member-kubeconfig FILE` gets a new one",
				c.Spec.APIEndpoint, c.Name)
		}
	} else {
		status.KubernetesVersion = version
	}
	wasReady := meta.IsStatusConditionTrue(status.Conditions, clusterv1alpha1.ConditionReady)
	meta.SetStatusCondition(&status.Conditions, condition)
	measureCluster(c.Name, err == nil)
	if !equality.Semantic.DeepEqual(c.Status, status) {
		unchanged := c.DeepCopy()
		c.Status = status
		if err := h.client.Status().Patch(ctx, &c, client.MergeFrom(unchanged), client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("write the status of Cluster %s: %w", c.Name, err)
		}
	}
	if err == nil && wasReady && before != h.members.get(c.Name) {
		h.back(c.Name)
	}
	if !c.DeletionTimestamp.IsZero() {
		return h.leave(ctx, &c)
	}
	if err == nil {
		if err := h.renew(ctx, &c); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "renew the token of a cluster", "cluster", c.Name)
		}
	}
	return ctrl.Result{RequeueAfter: askEvery}, nil
}

// makeRoom for the Works of a cluster that did not join by the command.
func (h *harbourmaster) makeRoom(ctx context.Context, cluster string) error {
	namespace := namespaceNamed(executionNamespace(cluster))
	there := metadataOf(namespace.GroupVersionKind())
	if err := h.secrets.Get(ctx, client.ObjectKeyFromObject(namespace), there); err == nil {
		return nil
	}
	if err := h.client.Create(ctx, namespace, client.FieldOwner(FieldOwner)); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create namespace %s: %w", namespace.GetName(), err)
	}
	return nil
}

// leaveAgain is how often it is looked whether a cluster that leaves has left.
const leaveAgain = time.Second

// leave lets a Cluster go when all of its Works are gone.
func (h *harbourmaster) leave(ctx context.Context, c *clusterv1alpha1.Cluster) (ctrl.Result, error) {
	var works workv1alpha1.WorkList
	if err := h.client.List(ctx, &works, client.InNamespace(executionNamespace(c.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the Works of cluster %s: %w", c.Name, err)
	}
	for i := range works.Items {
		w := &works.Items[i]
		if !w.DeletionTimestamp.IsZero() {
			continue
		}
		if err := h.client.Delete(ctx, w); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("delete Work %s/%s: %w", w.Namespace, w.Name, err)
		}
	}
	if len(works.Items) > 0 {
		h.back(c.Name)
		return ctrl.Result{RequeueAfter: leaveAgain}, nil
	}
	before := c.DeepCopy()
	if controllerutil.RemoveFinalizer(c, FinalizerCluster) {
		if err := h.client.Patch(ctx, c, client.MergeFrom(before), client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("let Cluster %s go: %w", c.Name, err)
		}
	}
	h.members.forget(c.Name)
	return ctrl.Result{}, nil
}

func (h *harbourmaster) ask(ctx context.Context, c *clusterv1alpha1.Cluster) (string, error) {
	m, err := h.members.reach(ctx, c)
	if err != nil {
		return "", err
	}
	return alive(ctx, m.config)
}
