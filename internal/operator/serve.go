package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/fairlead/fairlead/internal/version"
)

const shutdownTimeout = 5 * time.Second

// readiness holds what the operator still waits for; nil means ready.
type readiness struct {
	waiting atomic.Pointer[string]
	// synced is when the manager has all its caches, which may be later.
	synced atomic.Bool
	// hooks are nil as long as there are none.
	hooks atomic.Pointer[webhooks]
	// holds are the passages that hold, nil for a process without passages.
	holds *passageHolds
}

// restart forgets what was ready.
func (r *readiness) restart() {
	r.waitingFor("the passages to start")
	r.synced.Store(false)
	r.hooks.Store(nil)
}

func (r *readiness) waitingFor(what string) { r.waiting.Store(&what) }
func (r *readiness) ready()                 { r.waiting.Store(nil) }

func (r *readiness) check() error {
	if what := r.waiting.Load(); what != nil {
		return errors.New("waiting for " + *what)
	}
	if hooks := r.hooks.Load(); hooks != nil {
		return hooks.source.Check(time.Now())
	}
	return nil
}

// servers are the listeners that options ask for. They are the operator's own rather than the manager's because they
// must answer before there is a manager: an operator that waits for its API server is alive, and not ready.
func servers(config *rest.Config, options Options, ready *readiness, monitor *leaseMonitor, log logr.Logger) ([]*manager.Server, error) {
	var all []*manager.Server
	add := func(name, address string, handler http.Handler, wrap func(net.Listener) (net.Listener, error)) error {
		if disabled(address) {
			return nil
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("serve %s: %w", name, err)
		}
		listener = limitConnections(listener, maxConnections)
		if wrap != nil {
			if listener, err = wrap(listener); err != nil {
				return fmt.Errorf("serve %s: %w", name, err)
			}
		}
		all = append(all, newServer(name, listener, handler))
		return nil
	}

	metrics := metricsHandler(monitor, ready.holds, options.LeaderElection)
	routes := map[string]http.Handler{"GET /metrics": metrics}
	if options.Profiles {
		routes["GET /debug/pprof/"] = profilesHandler()
	}
	protected, err := requireToken(config, routes, log)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		add("health probes", options.HealthProbeBindAddress, probesHandler(ready, monitor), nil),
		add("metrics", options.MetricsBindAddress, protected, selfSigned),
		add("insecure metrics", options.MetricsInsecureBindAddress, metrics, nil),
	)
	if err != nil {
		for _, s := range all {
			_ = s.Listener.Close()
		}
		return nil, err
	}
	return all, nil
}

func newServer(name string, listener net.Listener, handler http.Handler) *manager.Server {
	server := &http.Server{Handler: handler}
	limitClients(server)
	return &manager.Server{Name: name, Listener: listener, Server: server, ShutdownTimeout: ptr.To(shutdownTimeout)}
}

func probesHandler(ready *readiness, monitor *leaseMonitor) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	// Not controller-runtime's handler, which withholds the reason.
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := errors.Join(ready.check(), monitor.check(time.Now())); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "ok\n"+monitor.describeHolders()+ready.holds.describe())
	})
	return mux
}

func metricsHandler(monitor *leaseMonitor, holds *passageHolds, elects bool) http.Handler {
	expected := holds.notHeld
	if !elects {
		expected = func() []string { return nil }
	}
	build := prometheus.NewRegistry()
	build.MustRegister(version.Get().Collector(), leaseCollector{monitor, expected}, holds)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(
		prometheus.Gatherers{build, ctrlmetrics.Registry},
		promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError},
	))
	return mux
}

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// requireToken requires a token that may get the path. Whoever calls can have the API server review a token: these are limited.
func requireToken(config *rest.Config, routes map[string]http.Handler, log logr.Logger) (http.Handler, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = reviewsPerSecond, reviewBurst
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("protect metrics: %w", err)
	}
	filter, err := filters.WithAuthenticationAndAuthorization(config, client)
	if err != nil {
		return nil, fmt.Errorf("protect metrics: %w", err)
	}
	// One limit for all paths.
	inner, mux := http.NewServeMux(), http.NewServeMux()
	protected, err := filter(log, inner)
	if err != nil {
		return nil, fmt.Errorf("protect metrics: %w", err)
	}
	limited := limitCalls(protected)
	for path, handler := range routes {
		inner.Handle(path, handler)
		mux.Handle(path, limited)
	}
	return mux, nil
}

// profilesHandler serves the profiles of this process, but for its command line.
func profilesHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// selfSigned encrypts; access is decided by the token, not by the certificate.
func selfSigned(listener net.Listener) (net.Listener, error) {
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("generate a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("load the generated certificate: %w", err)
	}
	return tls.NewListener(listener, &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
	}), nil
}

// syncedRunnable runs on every replica, leading or not, once the manager has synced its caches.
type syncedRunnable func()

func (f syncedRunnable) Start(context.Context) error { f(); return nil }

func (syncedRunnable) NeedLeaderElection() bool { return false }
