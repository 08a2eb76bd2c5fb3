package policy

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

var resourcesByState = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "fairlead_adoption_resources",
	Help: "Resources that a policy takes, by state: applied, conflicting, failed or pending. The policies of the cluster have no namespace.",
}, []string{"namespace", "policy", "state"})

func init() { metrics.Registry.MustRegister(resourcesByState) }

// recordMetrics records the resources of a policy by state.
func recordMetrics(policy model.PolicyKey, status policyv1alpha1.PropagationStatus, pending int32) {
	for state, n := range map[string]int32{
		"applied": status.Applied, "conflicting": status.Conflicting, "failed": status.Failed, "pending": pending,
	} {
		resourcesByState.WithLabelValues(policy.Namespace, policy.Name, state).Set(float64(n))
	}
}

// deleteMetrics forgets a policy that is gone.
func deleteMetrics(policy model.PolicyKey) {
	resourcesByState.DeletePartialMatch(prometheus.Labels{"namespace": policy.Namespace, "policy": policy.Name})
}
