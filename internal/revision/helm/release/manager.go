package release

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"helm.sh/helm/v4/pkg/chart/common"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fairlead/fairlead/internal/revision/helm/charts"
)

// Manager installs, upgrades, restores and uninstalls releases. It is safe for concurrent use; operations on one release are
// serialized. No other process may write to the same releases.
type Manager struct {
	config *rest.Config
	http   *http.Client
	mapper meta.RESTMapper
	client client.Client
	log    logr.Logger

	locks    sync.Map // of chan struct{}, by the key of the release
	recent   recentWrites
	rendered sync.Map // of rendering, by the key of the release

	mu sync.Mutex
	// known are the capabilities of the cluster that charts may query. They are discovered once, and again when a release has
	// installed CRDs.
	known *common.Capabilities
}

// New makes a Manager for the cluster of the config. The mapper has to discover new kinds by itself.
func New(config *rest.Config, mapper meta.RESTMapper, log logr.Logger) (*Manager, error) {
	m := &Manager{config: rest.CopyConfig(config), mapper: mapper, log: log}
	m.config.WarningHandler, m.config.WarningHandlerWithContext = nil, WarningLogger{}
	var err error
	if m.http, err = rest.HTTPClientFor(m.config); err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	m.client, err = client.New(m.config, client.Options{HTTPClient: m.http, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	for _, op := range []operation{opRender, opInstall, opUpgrade, opUninstall, opCompare, opRestore} {
		operations.WithLabelValues(string(op))
	}
	return m, nil
}

// httpFor is the client for Helm's storage and for discovery, whose calls take no context: their requests fail once the
// context has ended.
func (m *Manager) httpFor(ctx context.Context) *http.Client {
	base := cmp.Or(m.http.Transport, http.DefaultTransport)
	return &http.Client{Transport: charts.ContextTransport{Context: ctx, Base: base}, Timeout: m.http.Timeout}
}

// lock waits for a release; done unlocks it. An operation that runs would otherwise look like one that a crash has
// interrupted.
func (m *Manager) lock(ctx context.Context, key types.NamespacedName) (done func(), err error) {
	known, _ := m.locks.LoadOrStore(key, make(chan struct{}, 1))
	lock := known.(chan struct{})
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for release %s: %w", key, context.Cause(ctx))
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

// operations counts what is done to releases. An event that concerns no release must not count.
var operations = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "fairlead_helm_operations_total",
	Help: "What was done to Helm releases: charts rendered, releases installed, upgraded and uninstalled, " +
		"objects compared with what is live and restored.",
}, []string{"operation"})

func init() { metrics.Registry.MustRegister(operations) }

func count(op operation) { operations.WithLabelValues(string(op)).Inc() }

// WarningLogger logs warnings of the API server about objects of charts at debug level.
type WarningLogger struct{}

// HandleWarningHeaderWithContext logs a warning.
func (WarningLogger) HandleWarningHeaderWithContext(ctx context.Context, _ int, _ string, text string) {
	logr.FromContextOrDiscard(ctx).V(1).Info("the API server warns about an installed object", "warning", text)
}
