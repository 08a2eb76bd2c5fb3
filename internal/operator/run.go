// Package operator is the process that runs the passages: flags, leader election, probes and metrics.
package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fairlead/fairlead/internal/version"
)

// Run runs the passages until the context ends. Options are validated ones.
func Run(ctx context.Context, restConfig *rest.Config, options Options, log logr.Logger) error {
	adoptLogger(log)
	passages, err := selectPassages(Passages(), options.Passages)
	if err != nil {
		return err
	}
	build := version.Get()
	restConfig = rest.CopyConfig(restConfig)
	restConfig.UserAgent = fmt.Sprintf("fairlead/%s (%s)", build.Version, build.Platform)
	// Priority and fairness in the API server limits us better than a guess in the client.
	restConfig.QPS = -1

	names := make([]string, 0, len(passages))
	for _, p := range passages {
		names = append(names, p.Name)
	}
	log.Info("starting fairlead", "version", build.Version, "commit", build.Commit, "go", build.GoVersion,
		"passages", strings.Join(names, ","), "server", restConfig.Host)

	ready := &readiness{}
	ready.waitingFor("the API server")
	felt := &pulse{server: restConfig.Host}
	listening, err := servers(restConfig, options, ready, felt, log)
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
		return runPassages(ctx, restConfig, options, passages, ready, felt, log)
	})
	err = group.Wait()
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	log.Info("stopped")
	return nil
}

func runPassages(ctx context.Context, restConfig *rest.Config, options Options, passages []Passage, ready *readiness,
	felt *pulse, log logr.Logger,
) error {
	if err := persist(ctx, log, startBackoff(), "reach the API server", reachServer(restConfig)); err != nil {
		return err
	}
	if options.InstallCRDs {
		ready.waitingFor("the CRDs to be installed")
		if err := persist(ctx, log, startBackoff(), "install CRDs", installCRDs(restConfig, log)); err != nil {
			return err
		}
	}

	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	mgr, err := newManager(restConfig, options, scheme, felt, log)
	if err != nil {
		return err
	}
	ready.waitingFor("the kinds of the passages to be served")
	for _, p := range passages {
		served := kindsServed(mgr.GetRESTMapper(), scheme, p.Caches)
		if err := persist(ctx, log, startBackoff(), "find the kinds of passage "+p.Name, served); err != nil {
			return err
		}
		for _, kind := range p.Caches {
			if _, err := mgr.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
				return fmt.Errorf("cache %T for passage %s: %w", kind, p.Name, err)
			}
		}
		if err := p.Setup(mgr, options); err != nil {
			return fmt.Errorf("set up passage %s: %w", p.Name, err)
		}
	}

	ready.waitingFor("the caches to be synced")
	err = mgr.Add(syncedRunnable(func() {
		ready.ready()
		log.Info("ready")
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
	return start(ctx, mgr, ready, felt)
}

// start runs the manager. A manager that is told to stop while its caches cannot sync, because a permission is missing,
// waits for them for ever; it holds no lease and has started nothing, so it is left behind.
func start(ctx context.Context, mgr ctrl.Manager, ready *readiness, felt *pulse) error {
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		if err == nil {
			return nil
		}
		// The manager only says that it does not lead any more.
		if lost := felt.lost(time.Now()); lost != nil {
			return lost
		}
		return fmt.Errorf("run the passages: %w", err)
	case <-ctx.Done():
	}
	if err := ready.check(); err != nil {
		return nil
	}
	return <-ended
}

func newManager(restConfig *rest.Config, options Options, scheme *runtime.Scheme, felt *pulse, log logr.Logger) (ctrl.Manager, error) {
	lock, err := newLock(restConfig, options, felt, log)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme,
		Logger: log,
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
		LeaderElectionID:                    leaseName,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       ptr.To(leaseDuration),
		RenewDeadline:                       ptr.To(renewDeadline),
		RetryPeriod:                         ptr.To(retryPeriod),

		Metrics:                metricsserver.Options{BindAddress: noListener},
		HealthProbeBindAddress: noListener,
	})
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	return mgr, nil
}
