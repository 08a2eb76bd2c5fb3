// Package meshservice is the passage that moves a mesh from service tags to MeshServices: it generates MeshServices, serves
// proxies over xDS, and switches consumers over on request.
package meshservice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate"
)

// meshGrace is how long what is generated is kept after its Mesh is deleted: `kubectl replace --force` creates the Mesh again.
const meshGrace = 30 * time.Second

// Name of the passage.
const Name = "meshservice"

// Caches are the kinds that the passage reads from the manager's cache.
func Caches() []client.Object { return []client.Object{&kumav1alpha1.Mesh{}} }

// RBAC beyond that of generate and consumers.
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=meshes.kuma.io;meshconsumerslices.fairlead.dev;meshservingreports.fairlead.dev;dataplanes.kuma.io;zoneingresses.kuma.io;meshservices.kuma.io;meshmultizoneservices.kuma.io;hostnamegenerators.kuma.io;meshtimeouts.kuma.io;meshretries.kuma.io;meshcircuitbreakers.kuma.io;meshloadbalancingstrategies.kuma.io;meshhttproutes.kuma.io;meshtcproutes.kuma.io,verbs=get;create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=kuma-cp-leader,verbs=list;watch
// Patched when they are taken over from a Kuma control plane.
// +kubebuilder:rbac:groups=kuma.io,resources=dataplanes;meshservices,verbs=patch
// +kubebuilder:rbac:groups=kuma.io,resources=meshes,verbs=get;list;watch
// +kubebuilder:rbac:groups=kuma.io,resources=meshes/status,verbs=patch

// Setup adds the passage to the manager. Without a Mesh it watches nothing else, since a cache of all pods and Services is
// expensive.
func Setup(mgr ctrl.Manager, options Options) error {
	for _, name := range obsoleteVariables(os.Environ()) {
		mgr.GetLogger().Info("environment variable is obsolete and ignored: set spec.meshServices of the Mesh", "variable", name)
	}
	return mgr.Add(&passage{outer: mgr, options: options})
}

// passage runs an inner manager that starts with the first Mesh.
type passage struct {
	outer   ctrl.Manager
	options Options
}

// Start runs the passage until the context ends; only on the leader.
func (p *passage) Start(ctx context.Context) error {
	if err := p.waitForMesh(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	inner, err := p.manager(ctx)
	if err != nil {
		return fmt.Errorf("create the manager of the passage: %w", err)
	}
	if err := p.setup(inner); err != nil {
		return err
	}
	return inner.Start(ctx)
}

// waitForMesh waits for the first Mesh. Generated resources and slices of a deleted Mesh also start the passage, which deletes them.
func (p *passage) waitForMesh(ctx context.Context) error {
	left := false
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := moveSlices(ctx, p.outer.GetAPIReader(), p.outer.GetClient())
		if err == nil {
			left, err = p.hasGenerated(ctx)
		}
		if err != nil {
			p.outer.GetLogger().Error(err, "reading generated resources failed and is retried")
		}
		return err == nil, nil
	})
	if err != nil || left {
		return nil
	}
	informer, err := p.outer.GetCache().GetInformer(ctx, &kumav1alpha1.Mesh{})
	if err != nil {
		return fmt.Errorf("watch Meshes: %w", err)
	}
	found := make(chan struct{})
	once := sync.OnceFunc(func() { close(found) })
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { once() }})
	if err != nil {
		return fmt.Errorf("watch Meshes: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }()
	select {
	case <-found:
	case <-ctx.Done():
	}
	return nil
}

func (p *passage) hasGenerated(ctx context.Context) (bool, error) {
	for _, kind := range []schema.GroupVersionKind{
		kumav1alpha1.GroupVersion.WithKind(kumav1alpha1.DataplaneKind), kumav1alpha1.GroupVersion.WithKind(kumav1alpha1.MeshServiceKind),
		fairleadv1alpha1.GroupVersion.WithKind(fairleadv1alpha1.MeshConsumerSliceKind),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		made := client.MatchingLabels{kumav1alpha1.LabelManagedBy: kumav1alpha1.ManagedBy}
		if err := p.outer.GetAPIReader().List(ctx, list, made, client.Limit(1)); err != nil {
			return false, fmt.Errorf("list a generated %s: %w", kind.Kind, err)
		}
		if len(list.Items) > 0 {
			return true, nil
		}
	}
	return false, nil
}

func (p *passage) manager(ctx context.Context) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(kumav1alpha1.AddToScheme(scheme), fairleadv1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return ctrl.NewManager(p.outer.GetConfig(), ctrl.Options{
		Scheme: scheme,
		Logger: p.outer.GetLogger(),
		// With the tracer of the outer manager, and not its end.
		BaseContext: func() context.Context { return context.WithoutCancel(ctx) },
		Cache:       generate.CacheOptions(p.options.ZoneInfo),
		Controller:  config.Controller{SkipNameValidation: ptr.To(true)},
		// The outer manager holds the lease.
		LeaderElection:         false,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
}

// setup connects the parts. Generate writes Dataplanes, MeshServices and VIPs, from which proxies are served: by this process,
// or by others whose reports it reads.
func (p *passage) setup(mgr ctrl.Manager) error {
	where, options := p.options.ZoneInfo, p.options.Serving
	s := newServer(mgr, where, options)
	served, err := p.setupServing(mgr, s)
	if err != nil {
		return err
	}
	if err := generate.Setup(mgr, generate.Options{ZoneInfo: where, Connections: served.connections, Grace: p.options.Grace, MeshGrace: meshGrace, Ranges: p.options.Ranges, NamespaceVIPs: p.options.NamespaceVIPs, TakenOver: p.options.TakenOver}); err != nil {
		return fmt.Errorf("set up the generation of MeshServices: %w", err)
	}
	reporter := &servedReconciler{
		client: mgr.GetClient(), where: where, serving: options, by: served.by, ready: s.publisher.IsServed,
		problems: s.publisher.Problems, live: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("fairlead.dev/meshservice"),
	}
	if err := reporter.setup(mgr); err != nil {
		return fmt.Errorf("set up the report on Meshes: %w", err)
	}
	return consumers.Setup(mgr, consumers.Options{
		Serving: options.enabled(), Reported: options.Reports, Connection: served.connections.Connection, Proxies: s.engine.Proxies, Sent: served.sent,
		Recorded: served.recorded, Changes: served.connections.OnChange, Timeout: p.options.SwitchTimeout,
	})
}
