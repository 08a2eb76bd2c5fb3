package consumers

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

var consumersByState = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "fairlead_mesh_consumers",
	Help: "Consumers of a mesh by migration state.",
}, []string{"mesh", "state"})

func init() { metrics.Registry.MustRegister(consumersByState) }

func setMetrics(mesh string, record *kumav1alpha1.MeshMigration) {
	counts := map[kumav1alpha1.ConsumerState]int{
		kumav1alpha1.ConsumerWaiting: 0, kumav1alpha1.ConsumerSwitching: 0, kumav1alpha1.ConsumerSwitched: 0,
		kumav1alpha1.ConsumerReverting: 0, kumav1alpha1.ConsumerReverted: 0, kumav1alpha1.ConsumerFailed: 0,
	}
	if record != nil {
		for i := range record.Consumers {
			counts[record.Consumers[i].State]++
		}
	}
	for state, n := range counts {
		consumersByState.WithLabelValues(mesh, string(state)).Set(float64(n))
	}
}

func deleteMetrics(mesh string) {
	consumersByState.DeletePartialMatch(prometheus.Labels{"mesh": mesh})
}
