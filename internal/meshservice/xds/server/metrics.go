package server

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	connectedProxies = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fairlead_mesh_connected_proxies",
		Help: "Proxies of a mesh that are connected to this operator.",
	}, []string{"mesh"})
	nacks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_mesh_refusals_total",
		Help: "xDS responses that proxies of a mesh rejected (NACK).",
	}, []string{"mesh"})
)

func init() { metrics.Registry.MustRegister(connectedProxies, nacks) }

func deleteMetrics(mesh string) {
	connectedProxies.DeleteLabelValues(mesh)
	nacks.DeleteLabelValues(mesh)
}
