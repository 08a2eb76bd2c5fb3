package member

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Writes counts the objects written in members.
var Writes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "fairlead_adoption_member_writes_total",
	Help: "Objects written in clusters, by action: create, take over, update, delete, orphan or restore.",
}, []string{"cluster", "action"})

var readyGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "fairlead_adoption_cluster_ready",
	Help: "1 for a cluster that can be reached, 0 for one that cannot.",
}, []string{"cluster"})

func init() { metrics.Registry.MustRegister(Writes, readyGauge) }

// recordReady tells whether a cluster can be reached.
func recordReady(name string, ready bool) {
	value := 0.0
	if ready {
		value = 1
	}
	readyGauge.WithLabelValues(name).Set(value)
}

// deleteMetrics forgets a cluster that has left.
func deleteMetrics(name string) {
	for _, vector := range []*prometheus.MetricVec{readyGauge.MetricVec, Writes.MetricVec} {
		vector.DeletePartialMatch(prometheus.Labels{"cluster": name})
	}
}
