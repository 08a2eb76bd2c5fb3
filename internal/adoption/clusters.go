package adoption

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// How often clusters are asked whether they serve, and how long they may take to answer.
const (
	askEvery      = 10 * time.Second
	answerTimeout = 5 * time.Second
)

// The reasons of the condition Ready of a Cluster.
const (
	ReasonReady       passage.Code = "ClusterReady"
	ReasonUnreachable passage.Code = "ClusterNotReachable"
)

// harbourmaster keeps the connections to clusters, and tells whether they can be reached.
type harbourmaster struct {
	client  client.Client
	members *members
	now     func() time.Time
	// back is called with a cluster that can be reached again, or in another way.
	back func(cluster string)
}

// Reconcile looks at one cluster.
func (h *harbourmaster) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var c clusterv1alpha1.Cluster
	if err := h.client.Get(ctx, request.NamespacedName, &c); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if err != nil {
		h.members.forget(request.Name)
		return ctrl.Result{}, nil
	}
	before := h.members.get(c.Name)
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
	} else {
		status.KubernetesVersion = version
	}
	wasReady := meta.IsStatusConditionTrue(status.Conditions, clusterv1alpha1.ConditionReady)
	meta.SetStatusCondition(&status.Conditions, condition)
	if !equality.Semantic.DeepEqual(c.Status, status) {
		unchanged := c.DeepCopy()
		c.Status = status
		if err := h.client.Status().Patch(ctx, &c, client.MergeFrom(unchanged), client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("write the status of Cluster %s: %w", c.Name, err)
		}
	}
	if err == nil && (!wasReady || before != h.members.get(c.Name)) {
		h.back(c.Name)
	}
	return ctrl.Result{RequeueAfter: askEvery}, nil
}

func (h *harbourmaster) ask(ctx context.Context, c *clusterv1alpha1.Cluster) (string, error) {
	m, err := h.members.reach(ctx, c)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return m.alive(ctx)
}
