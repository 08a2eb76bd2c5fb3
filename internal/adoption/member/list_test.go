package member

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

func TestRoster(t *testing.T) {
	cluster := func(name string, generation int64, conditions ...metav1.Condition) clusterv1alpha1.Cluster {
		return clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation},
			Spec:       clusterv1alpha1.ClusterSpec{APIEndpoint: "https://" + name},
			Status:     clusterv1alpha1.ClusterStatus{KubernetesVersion: "v1.36.3", Conditions: conditions},
		}
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, ObservedGeneration: 1}
	down := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, ObservedGeneration: 1, Reason: "ClusterNotReachable", Message: "nobody answers"}
	work := func(cluster string, generation int64, conditions ...metav1.Condition) workv1alpha1.Work {
		return workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{Namespace: model.ExecutionNamespace(cluster), Generation: generation},
			Status:     workv1alpha1.WorkStatus{Conditions: conditions},
		}
	}
	applied := metav1.Condition{Type: "Applied", Status: metav1.ConditionTrue, ObservedGeneration: 1}
	going := cluster("going", 1, ready)
	going.DeletionTimestamp = &metav1.Time{}
	going.DeletionTimestamp.Time = going.DeletionTimestamp.AddDate(2026, 0, 0)

	got := clusterInfos(
		[]clusterv1alpha1.Cluster{cluster("west", 1, ready), cluster("east", 1, down), cluster("north", 1), cluster("south", 2, ready), going},
		[]workv1alpha1.Work{
			work("west", 1, applied), work("west", 2, applied), work("west", 1), work("east", 1, applied),
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}},
		})
	notReported := &passage.Reason{Code: model.ReasonNotReported, Message: "the operator has not checked the cluster yet: see whether the operator runs"}
	want := []ClusterInfo{
		{Name: "east", Ready: "False", Works: 1, Applied: 1, Reason: &passage.Reason{Code: "ClusterNotReachable", Message: "nobody answers"}},
		{Name: "going", Ready: "False", Reason: &passage.Reason{Code: model.ReasonLeaving, Message: "the cluster is leaving the hub"}},
		{Name: "north", Ready: "Unknown", Reason: notReported},
		{Name: "south", Ready: "Unknown", Reason: notReported},
		{Name: "west", Ready: "True", Works: 3, Applied: 1},
	}
	for i := range want {
		want[i].Version, want[i].APIEndpoint = "v1.36.3", "https://"+want[i].Name
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
