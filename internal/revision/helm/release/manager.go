package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Manager installs, upgrades, restores and uninstalls releases. It is safe for concurrent use; operations on one release are
// serialized. No other process may write to the same releases.
type Manager struct {
	config  *rest.Config
	http    *http.Client
	mapper  meta.RESTMapper
	client  client.Client
	log     logr.Logger
	counter *prometheus.CounterVec

	locks    keyedMutex
	recent   recentWrites
	rendered sync.Map // of rendering, by the key of the release
	cluster  capabilityCache
}

// New makes a Manager for the cluster of the config. The mapper has to discover new kinds by itself.
func New(config *rest.Config, mapper meta.RESTMapper, log logr.Logger) (*Manager, error) {
	m := &Manager{
		config: rest.CopyConfig(config), mapper: mapper, log: log,
		locks:  keyedMutex{locked: map[types.NamespacedName]chan struct{}{}},
		recent: recentWrites{last: map[types.NamespacedName]recentWrite{}},
	}
	m.config.WarningHandler, m.config.WarningHandlerWithContext = nil, WarningLogger{}
	var err error
	if m.http, err = rest.HTTPClientFor(m.config); err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	m.client, err = client.New(m.config, client.Options{HTTPClient: m.http, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	if m.counter, err = newCounter(metrics.Registry); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}

// keyedMutex serializes operations on the same release: an operation that runs would otherwise look like one that a crash has
// interrupted.
type keyedMutex struct {
	mu     sync.Mutex
	locked map[types.NamespacedName]chan struct{}
}

// lock waits for the release; done unlocks it.
func (t *keyedMutex) lock(ctx context.Context, key types.NamespacedName) (done func(), err error) {
	for {
		t.mu.Lock()
		others, busy := t.locked[key]
		if !busy {
			mine := make(chan struct{})
			t.locked[key] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				delete(t.locked, key)
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-others:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for release %s: %w", key, context.Cause(ctx))
		}
	}
}

type operation string

const (
	opRender    operation = "render"
	opInstall   operation = "install"
	opUpgrade   operation = "upgrade"
	opUninstall operation = "uninstall"
	opCompare   operation = "compare"
	opRestore   operation = "restore"
)

// newCounter counts operations on releases. An event that concerns no release must not count.
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
