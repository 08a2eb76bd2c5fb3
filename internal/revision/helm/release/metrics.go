package release

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type operation string

const (
	opRender    operation = "render"
	opInstall   operation = "install"
	opUpgrade   operation = "upgrade"
	opUninstall operation = "uninstall"
	opCompare   operation = "compare"
	opRestore   operation = "restore"
)

// newCounter counts what is done to releases. An event that concerns none of them must leave it as it is.
func newCounter(registry prometheus.Registerer) (*prometheus.CounterVec, error) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_helm_operations_total",
		Help: "What was done to Helm releases: charts rendered, releases installed, upgraded and uninstalled, " +
			"objects compared with what is live and restored.",
	}, []string{"operation"})
	if err := registry.Register(counter); err != nil {
		var already prometheus.AlreadyRegisteredError
		if !errors.As(err, &already) {
			return nil, err
		}
		counter = already.ExistingCollector.(*prometheus.CounterVec)
	}
	for _, op := range []operation{opRender, opInstall, opUpgrade, opUninstall, opCompare, opRestore} {
		counter.WithLabelValues(string(op))
	}
	return counter, nil
}

func (m *Manager) count(op operation) { m.counter.WithLabelValues(string(op)).Inc() }
