package adoption

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

var (
	resourcesByState = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fairlead_adoption_resources",
		Help: "Resources that a policy takes, by what became of them: applied, conflicting, failed or pending. The policies of the cluster have no namespace.",
	}, []string{"namespace", "policy", "state"})
	memberWrites = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_adoption_member_writes_total",
		Help: "Objects written in clusters, by why: create, take over, update, delete, release or put back.",
	}, []string{"cluster", "action"})
	membersReady = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fairlead_adoption_cluster_ready",
		Help: "1 for a cluster that can be reached, 0 for one that cannot.",
	}, []string{"cluster"})
)

func init() { metrics.Registry.MustRegister(resourcesByState, memberWrites, membersReady) }

// measure what became of all that a policy takes.
func measure(policy Key, status policyv1alpha1.PropagationStatus, pending int32) {
	for state, n := range map[string]int32{
		"applied": status.Applied, "conflicting": status.Conflicting, "failed": status.Failed, "pending": pending,
	} {
		resourcesByState.WithLabelValues(policy.Namespace, policy.Name, state).Set(float64(n))
	}
}

// unmeasure forgets a policy that is gone.
func unmeasure(policy Key) {
	resourcesByState.DeletePartialMatch(prometheus.Labels{"namespace": policy.Namespace, "policy": policy.Name})
}

// measureCluster tells whether a cluster can be reached.
func measureCluster(name string, ready bool) {
	value := 0.0
	if ready {
		value = 1
	}
	membersReady.WithLabelValues(name).Set(value)
}

// unmeasureCluster forgets a cluster that has left.
func unmeasureCluster(name string) {
	for _, vector := range []*prometheus.MetricVec{membersReady.MetricVec, memberWrites.MetricVec} {
		vector.DeletePartialMatch(prometheus.Labels{"cluster": name})
	}
}
