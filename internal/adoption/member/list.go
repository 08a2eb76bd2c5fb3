package member

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// ClusterInfo is a cluster that has joined, and its state.
type ClusterInfo struct {
	Name string `json:"name"`
	// Ready is True, False or, until the operator has checked the cluster, Unknown.
	Ready       metav1.ConditionStatus `json:"ready"`
	Version     string                 `json:"version,omitempty"`
	APIEndpoint string                 `json:"apiEndpoint"`
	// Works are the number of Works of the cluster, and Applied those that are applied.
	Works   int `json:"works"`
	Applied int `json:"applied"`
	// Reason is why the cluster is not ready.
	Reason *passage.Reason `json:"reason,omitempty"`
	Joined time.Time       `json:"joined"`
}

// ListClusters lists the clusters that have joined, by name.
func ListClusters(ctx context.Context, hub client.Reader) ([]ClusterInfo, error) {
	var clusters clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("list Clusters: %w", err)
	}
	var works workv1alpha1.WorkList
	if err := hub.List(ctx, &works); err != nil {
		return nil, fmt.Errorf("list Works: %w", err)
	}
	return clusterInfos(clusters.Items, works.Items), nil
}

func clusterInfos(clusters []clusterv1alpha1.Cluster, works []workv1alpha1.Work) []ClusterInfo {
	all, applied := map[string]int{}, map[string]int{}
	for i := range works {
		cluster, ok := model.ClusterOf(works[i].Namespace)
		if !ok {
			continue
		}
		all[cluster]++
		condition := meta.FindStatusCondition(works[i].Status.Conditions, workv1alpha1.ConditionApplied)
		if condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == works[i].Generation {
			applied[cluster]++
		}
	}
	list := make([]ClusterInfo, 0, len(clusters))
	for i := range clusters {
		c := &clusters[i]
		e := ClusterInfo{
			Name: c.Name, Version: c.Status.KubernetesVersion, APIEndpoint: c.Spec.APIEndpoint,
			Works: all[c.Name], Applied: applied[c.Name], Joined: c.CreationTimestamp.Time,
		}
		e.Ready, e.Reason = readiness(c)
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b ClusterInfo) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// readiness tells whether a cluster is ready, and why not.
func readiness(c *clusterv1alpha1.Cluster) (metav1.ConditionStatus, *passage.Reason) {
	condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	switch {
	case !c.DeletionTimestamp.IsZero():
		return metav1.ConditionFalse, passage.NewReason(model.ReasonLeaving, "the cluster is leaving the hub")
	case condition == nil || condition.ObservedGeneration != c.Generation:
		return metav1.ConditionUnknown, passage.NewReason(model.ReasonNotReported,
			"the operator has not checked the cluster yet: see whether the operator runs")
	case condition.Status == metav1.ConditionTrue:
		return condition.Status, nil
	}
	return condition.Status, passage.NewReason(condition.Reason, "%s", condition.Message)
}
