// Package operator is the process that runs the passages: flags, leader election, probes and metrics.
package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice"
	"github.com/fairlead/fairlead/internal/operator/lease"
	"github.com/fairlead/fairlead/internal/version"
)

// Run runs the passages until the context ends. Options are validated ones.
func Run(ctx context.Context, restConfig *rest.Config, options Options, log logr.Logger) error {
	setLogger(log)
	limitMemory(os.DirFS("/"), log)
	passages, err := selectPassages(Passages(), options.Passages)
	if err != nil {
		return err
	}
	build := version.Get()
	restConfig = clientConfig(restConfig)
	tracing, err := startTracing(ctx, options.Tracing, log)
	if err != nil {
		return err
	}
	if tracing != nil {
		defer endTracing(tracing)
		restConfig.Wrap(kube.TraceRequests(tracing))
		ctx = kube.WithTracer(ctx, tracing.Tracer("fairlead"))
	}

	log.Info("starting fairlead", "version", build.Version, "commit", build.Commit, "go", build.GoVersion,
		"passages", strings.Join(namesOf(passages), ","), "server", restConfig.Host)

	ready := &readiness{}
	ready.waitingFor("the API server")
	monitor := &leaseMonitor{server: restConfig.Host, times: leaseTimesOf(options.LeaderElectionLeaseDuration)}
	reporting, stopReporting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReporting()
	if ready.holds, err = newPassageHolds(reporting, restConfig, passages, options.TakeOver, log); err != nil {
		return err
	}
	listening, err := servers(restConfig, options, ready, monitor, log)
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	for _, server := range listening {
		group.Go(func() error { return server.Start(logr.NewContext(ctx, log)) })
	}
	group.Go(func() error {
		defer stop()
		return runFree(ctx, restConfig, options, ready.holds, ready, monitor, log)
	})
	err = group.Wait()
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	log.Info("stopped")
	return nil
}

// clientConfig is how a process of Fairlead talks to the API server.
func clientConfig(given *rest.Config) *rest.Config {
	build := version.Get()
	config := rest.CopyConfig(given)
	config.UserAgent = fmt.Sprintf("fairlead/%s (%s)", build.Version, build.Platform)
	// Priority and fairness in the API server limits us better than a guess in the client.
	config.QPS = -1
	// As in Kubernetes' own controllers: the API server is close, and compressing every watch event costs both sides more
	// processor time than it saves of the network.
	config.DisableCompression = true
	return config
}

// runPassages starts everything in an order in which nothing waits for what comes later: the certificate, the webhooks
// that present it, the CRDs that name the webhooks, and the caches that need the objects of these CRDs.
func runPassages(ctx context.Context, group *errgroup.Group, restConfig *rest.Config, options Options, passages []Passage,
	holds *passageHolds, ready *readiness, monitor *leaseMonitor, log logr.Logger,
) error {
	hooks := newWebhooks(restConfig, options, passages, log)
	if hooks != nil {
		if err := hooks.serve(ctx, group, ready); err != nil {
			return err
		}
	}
	names := crdsOf(passages)
	if options.InstallCRDs {
		ready.waitingFor("the CRDs to be installed")
		if err := retryTransient(ctx, log, startBackoff(), "install CRDs", installCRDs(restConfig, passages, options.TakeOver, hooks, log)); err != nil {
			return err
		}
	}

	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	runner := newManagerRunner(ctx)
	mgr, err := newManager(runner, restConfig, options, passages, scheme, monitor, log)
	if err != nil {
		return err
	}
	if hooks != nil && hooks.conversion != nil {
		group.Go(func() error { return hooks.keepConversion(ctx, mgr.Elected()) })
	}
	if options.InstallCRDs {
		if err := mgr.Add(migrateStored(restConfig, names, log)); err != nil {
			return err
		}
	}
	takeOver, takenOver := holds.takeOverLeft(passages)
	if err := mgr.Add(takeOver); err != nil {
		return err
	}
	options.Mesh.TakenOver = takenOver[meshservice.Name]
	ready.waitingFor("the kinds of the passages to be served")
	early, err := setUp(ctx, mgr, scheme, options, passages, hooks, log)
	if err != nil {
		return err
	}

	ready.waitingFor("the caches to be synced")
	getReady := sync.OnceFunc(func() {
		ready.ready()
		log.Info("ready")
	})
	if early != nil {
		go func() {
			if toolscache.WaitForCacheSync(ctx.Done(), early...) {
				getReady()
				monitor.pollServer(ctx, reachServer(restConfig), ready.synced.Load)
			}
		}()
	}
	err = mgr.Add(syncedRunnable(func() {
		ready.synced.Store(true)
		runner.cachesSynced(ctx)
		getReady()
	}))
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-mgr.Elected():
			log.Info("leading")
		case <-ctx.Done():
		}
	}()
	return start(ctx, mgr, runner, ready, monitor)
}

// setUp prepares the passages and their caches. When some of these need the webhooks, it returns all that the others
// wait for: the operator is ready with those alone, because a Service calls only replicas that are ready.
func setUp(ctx context.Context, mgr ctrl.Manager, scheme *runtime.Scheme, options Options, passages []Passage, hooks *webhooks,
	log logr.Logger,
) ([]toolscache.InformerSynced, error) {
	early, late := []toolscache.InformerSynced{}, false
	for _, p := range passages {
		served := kindsServed(mgr.GetRESTMapper(), scheme, p.Caches)
		if err := retryTransient(ctx, log, startBackoff(), "find the kinds of passage "+p.Name, served); err != nil {
			return nil, err
		}
		for _, kind := range p.Caches {
			informer, err := mgr.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false))
			if err != nil {
				return nil, fmt.Errorf("cache %T for passage %s: %w", kind, p.Name, err)
			}
			needed, err := hooks.convertsKind(kind, scheme)
			if err != nil {
				return nil, fmt.Errorf("cache %T for passage %s: %w", kind, p.Name, err)
			}
			if late = late || needed; !needed {
				early = append(early, informer.HasSynced)
			}
		}
		if err := p.Setup(mgr, options); err != nil {
			return nil, fmt.Errorf("set up passage %s: %w", p.Name, err)
		}
	}
	if !late {
		return nil, nil
	}
	return early, nil
}

func newManager(runner managerRunner, restConfig *rest.Config, options Options, passages []Passage, scheme *runtime.Scheme, monitor *leaseMonitor, log logr.Logger) (ctrl.Manager, error) {
	lock, err := newLock(restConfig, options, passages, monitor, log)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:      scheme,
		Logger:      log,
		BaseContext: func() context.Context { return runner.baseCtx },
		// A kind that no passage declared is refused, never cached by accident: one stray Get of a Secret would
		// otherwise hold every Secret of the cluster in memory.
		Cache: cache.Options{ReaderFailOnMissingInformer: true},
		// Replicas that do not lead keep their caches warm, so that taking over is immediate.
		Controller: config.Controller{
			EnableWarmup:          ptr.To(true),
			ReconciliationTimeout: 2 * time.Minute,
			// Names are unique by construction; the check would only forbid a second run in the same process.
			SkipNameValidation: ptr.To(true),
		},

		LeaderElection:                      options.LeaderElection,
		LeaderElectionID:                    lease.FormerName, // of the metric alone
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       ptr.To(monitor.times.duration),
		RenewDeadline:                       ptr.To(monitor.times.renewDeadline),
		RetryPeriod:                         ptr.To(monitor.times.retryPeriod),

		Metrics:                metricsserver.Options{BindAddress: noListener},
		HealthProbeBindAddress: noListener,
	})
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	return mgr, nil
}
