package leftover

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var leftoversGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "fairlead_adoption_leftovers",
	Help: "Objects of a cluster with the labels of this hub that the hub has no Work for, when the cluster was last searched for them.",
}, []string{"cluster"})

func init() { metrics.Registry.MustRegister(leftoversGauge) }
