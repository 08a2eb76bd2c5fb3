package work

import (
	"testing"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
)

func TestHealth(t *testing.T) {
	const healthy, unhealthy, unknown = workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy, workv1alpha2.ResourceUnknown
	for name, c := range map[string]struct {
		object string
		want   workv1alpha2.ResourceHealth
	}{
		"Deployment, available":          {"Deployment apps/v1\nspec: {replicas: 2}\nstatus: {updatedReplicas: 2, availableReplicas: 2}", healthy},
		"Deployment, being updated":      {"Deployment apps/v1\nspec: {replicas: 2}\nstatus: {updatedReplicas: 1, availableReplicas: 2}", unhealthy},
		"Deployment, not available":      {"Deployment apps/v1\nspec: {replicas: 2}\nstatus: {updatedReplicas: 2, availableReplicas: 1}", unhealthy},
		"Deployment, one by default":     {"Deployment apps/v1\nstatus: {updatedReplicas: 1, availableReplicas: 1}", healthy},
		"Deployment, not observed yet":   {"Deployment apps/v1\nmetadata: {generation: 2}\nspec: {replicas: 1}\nstatus: {observedGeneration: 1, updatedReplicas: 1, availableReplicas: 1}", unhealthy},
		"Deployment, scaled to zero":     {"Deployment apps/v1\nspec: {replicas: 0}", healthy},
		"Deployment without a status":    {"Deployment apps/v1\nspec: {replicas: 1}", unhealthy},
		"Deployment of another group":    {"Deployment example.com/v1\nspec: {replicas: 1}", unknown},
		"StatefulSet, ready":             {"StatefulSet apps/v1\nspec: {replicas: 3}\nstatus: {updatedReplicas: 3, readyReplicas: 3}", healthy},
		"StatefulSet, not ready":         {"StatefulSet apps/v1\nspec: {replicas: 3}\nstatus: {updatedReplicas: 3, readyReplicas: 2}", unhealthy},
		"StatefulSet, being updated":     {"StatefulSet apps/v1\nspec: {replicas: 3}\nstatus: {updatedReplicas: 2, readyReplicas: 3}", unhealthy},
		"ReplicaSet, available":          {"ReplicaSet apps/v1\nspec: {replicas: 1}\nstatus: {availableReplicas: 1}", healthy},
		"ReplicaSet, not available":      {"ReplicaSet apps/v1\nspec: {replicas: 1}", unhealthy},
		"DaemonSet, on all nodes":        {"DaemonSet apps/v1\nstatus: {desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}", healthy},
		"DaemonSet, being updated":       {"DaemonSet apps/v1\nstatus: {desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 3}", unhealthy},
		"DaemonSet, missing on one node": {"DaemonSet apps/v1\nstatus: {desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}", unhealthy},
		"claim, bound":                   {"PersistentVolumeClaim v1\nstatus: {phase: Bound}", healthy},
		"claim, pending":                 {"PersistentVolumeClaim v1\nstatus: {phase: Pending}", unhealthy},
		"pod, running":                   {"Pod v1\nstatus: {phase: Running}", healthy},
		"pod, succeeded":                 {"Pod v1\nstatus: {phase: Succeeded}", healthy},
		"pod, failed":                    {"Pod v1\nstatus: {phase: Failed}", unhealthy},
		"ConfigMap":                      {"ConfigMap v1", unknown},
		"custom resource":                {"Widget example.com/v1\nstatus: {conditions: [{type: Ready, status: 'True'}]}", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := healthOf(adoptiontest.Object(t, c.object)); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
