package meshservice

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/serving"
	"github.com/fairlead/fairlead/internal/meshservice/xds/publish"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/internal/meshservice/xds/server"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// xdsParts are the parts that serve proxies. The publisher reads Dataplanes, MeshServices and VIPs with the Meshes and policies,
// has the engine build a configuration for each proxy, and puts it into the store, from which the server sends it.
type xdsParts struct {
	engine    *snapshot.Engine
	store     *server.Store
	publisher *publish.Publisher
	address   *listenAddress
}

// newServer returns the parts. A process that does not serve proxies itself builds their configurations to report what cannot be
// built, and drops them.
func newServer(mgr ctrl.Manager, where desired.ZoneInfo, options ServingOptions) xdsParts {
	s := xdsParts{engine: snapshot.New(where), store: server.NewStore(), address: newListenAddress()}
	s.store.SetLookup(s.engine.Lookup)
	var into publish.Store = s.store
	if options.BindAddress == "" {
		into = noStore{}
	}
	s.publisher = publish.New(mgr.GetCache(), s.engine, into, where)
	return s
}

// noStore drops configurations.
type noStore struct{}

func (noStore) Set(model.ProxyID, *resource.Config) {}

// add adds the publisher, and the server if there is one.
func (s xdsParts) add(mgr ctrl.Manager, where desired.ZoneInfo, options ServingOptions) error {
	if err := mgr.Add(s.publisher); err != nil {
		return fmt.Errorf("set up the xDS publisher: %w", err)
	}
	if options.BindAddress == "" {
		return nil
	}
	if err := mgr.Add(&xdsServer{options: options, where: where, store: s.store, manager: mgr, address: s.address}); err != nil {
		return fmt.Errorf("set up the xDS server: %w", err)
	}
	return nil
}

// servedProxies is what the operator knows of proxies that are served.
type servedProxies struct {
	connections generate.Connections
	// by is who serves them, empty if nobody does.
	by       func() string
	sent     func(mesh string) (map[string]bool, bool)
	recorded func(mesh string, switched map[string]bool) bool
}

// setupServing serves proxies, or reads the reports of those that do.
func (p *passage) setupServing(mgr ctrl.Manager, s xdsParts) (servedProxies, error) {
	where, options := p.options.ZoneInfo, p.options.Serving
	if err := s.add(mgr, where, options); err != nil {
		return servedProxies{}, err
	}
	known := func(mesh string, switched map[string]bool) bool {
		return maps.Equal(s.publisher.RecordedConsumers(mesh), switched)
	}
	if !options.Reports {
		at := func() string {
			if address := s.address.get(); address != "" {
				return "at " + address
			}
			return ""
		}
		return servedProxies{connections: s.store, by: at, sent: s.publisher.SwitchedConsumers, recorded: known}, nil
	}
	reports := serving.NewReports(mgr.GetCache(), mgr.GetClient(), !where.IsUniversal(), mgr.GetLogger().WithName("mesh"))
	if err := mgr.Add(reports); err != nil {
		return servedProxies{}, fmt.Errorf("set up the reader of MeshServingReports: %w", err)
	}
	return servedProxies{
		connections: reports,
		by:          func() string { return replicasText(reports.Replicas()) },
		sent: func(mesh string) (map[string]bool, bool) {
			sent, ok := s.publisher.SwitchedConsumers(mesh)
			return sent, ok && reports.Synced()
		},
		recorded: func(mesh string, switched map[string]bool) bool {
			return known(mesh, switched) && reports.HaveRecorded(mesh, switched)
		},
	}, nil
}

func replicasText(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "by 1 process of `fairlead serve-mesh`"
	}
	return fmt.Sprintf("by %d processes of `fairlead serve-mesh`", n)
}

// ServeOptions are those of a process that serves proxies and does nothing else.
type ServeOptions struct {
	desired.ZoneInfo
	Serving ServingOptions
}

// DefaultServeOptions suit a mesh of one zone on Kubernetes.
func DefaultServeOptions() ServeOptions {
	o := DefaultOptions()
	return ServeOptions{ZoneInfo: o.ZoneInfo, Serving: o.Serving}
}

// AddFlags registers a flag for every option; the current values are the defaults.
func (o *ServeOptions) AddFlags(flags *pflag.FlagSet) {
	addZoneFlags(&o.ZoneInfo, flags)
	o.Serving.addFlags(flags)
}

// Validate rejects invalid options, each with its remedy.
func (o ServeOptions) Validate() error {
	var address error
	if o.Serving.BindAddress == "" {
		address = errors.New("--mesh-bind-address is missing: give the address at which proxies are served")
	}
	return errors.Join(address, validateServing(o.ZoneInfo, o.Serving))
}

// ServedKinds are the kinds that a process which serves proxies reads or writes, all of which must be served.
func ServedKinds() []client.Object {
	return []client.Object{
		&kumav1alpha1.Mesh{}, &kumav1alpha1.Dataplane{}, &kumav1alpha1.ZoneIngress{}, &kumav1alpha1.MeshService{}, &kumav1alpha1.MeshMultiZoneService{},
		&kumav1alpha1.MeshTimeout{}, &kumav1alpha1.MeshRetry{}, &kumav1alpha1.MeshCircuitBreaker{}, &kumav1alpha1.MeshLoadBalancingStrategy{},
		&kumav1alpha1.MeshHTTPRoute{}, &kumav1alpha1.MeshTCPRoute{}, &fairleadv1alpha1.MeshConsumerSlice{}, &fairleadv1alpha1.MeshServingReport{},
	}
}

// NewServeManager returns a manager of a process that serves proxies, whether or not others do. It calls ready when the first
// configurations are built and the server listens.
func NewServeManager(config *rest.Config, options ServeOptions, replica string, ready func(), log logr.Logger) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(kumav1alpha1.AddToScheme(scheme), fairleadv1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: log, Cache: generate.CacheOptions(options.ZoneInfo), LeaderElection: false,
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	s := newServer(mgr, options.ZoneInfo, options.Serving)
	reporter := serving.NewReporter(mgr.GetClient(), replica, serving.Source{
		Connection: s.store.Connection, OnConnection: s.store.OnChange, Consumer: s.engine.Consumer, Sent: s.publisher.SwitchedConsumers,
		Recorded: s.publisher.RecordedConsumers, OnSwitched: s.publisher.OnSwitched,
	}, log.WithName("mesh"))
	if err := errors.Join(s.add(mgr, options.ZoneInfo, options.Serving), mgr.Add(reporter)); err != nil {
		return nil, err
	}
	return mgr, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-s.publisher.Started():
		case <-ctx.Done():
			return nil
		}
		select {
		case <-s.address.listening:
			ready()
		case <-ctx.Done():
		}
		return nil
	}))
}
