package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/internal/meshservice"
	"github.com/fairlead/fairlead/internal/version"
)

// ServeMeshOptions are what the flags of `fairlead serve-mesh` set.
type ServeMeshOptions struct {
	// Process are the options of any process: probes, metrics and the log.
	Process Options
	Mesh    meshservice.ServeOptions
}

// DefaultServeMeshOptions suit a process that is started by hand.
func DefaultServeMeshOptions() ServeMeshOptions {
	return ServeMeshOptions{Process: DefaultOptions(), Mesh: meshservice.DefaultServeOptions()}
}

// AddFlags registers a flag for every option; what the options hold already is the default.
func (o *ServeMeshOptions) AddFlags(flags *pflag.FlagSet) {
	o.Process.addProcessFlags(flags)
	o.Mesh.AddFlags(flags)
}

// Validate refuses options that cannot work, each with its remedy.
func (o ServeMeshOptions) Validate() error {
	return errors.Join(o.Process.validateProcess(), o.Mesh.Validate())
}

// ServeMesh serves proxies until the context ends, as any number of processes do at a time. Options are validated ones.
func ServeMesh(ctx context.Context, restConfig *rest.Config, options ServeMeshOptions, log logr.Logger) error {
	setLogger(log)
	limitMemory(os.DirFS("/"), log)
	restConfig = clientConfig(restConfig)
	replica, err := newReplicaName()
	if err != nil {
		return err
	}
	build := version.Get()
	log.Info("starting fairlead serve-mesh", "version", build.Version, "commit", build.Commit, "go", build.GoVersion,
		"replica", replica, "server", restConfig.Host)
	ready := &readiness{}
	ready.waitingFor("the API server")
	listening, err := servers(restConfig, options.Process, ready, &leaseMonitor{server: restConfig.Host}, log)
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
		return serveMesh(ctx, restConfig, options.Mesh, replica, ready, log)
	})
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	log.Info("stopped")
	return nil
}

func serveMesh(ctx context.Context, restConfig *rest.Config, options meshservice.ServeOptions, replica string, ready *readiness, log logr.Logger) error {
	if err := retryTransient(ctx, log, startBackoff(), "reach the API server", reachServer(restConfig)); err != nil {
		return err
	}
	mgr, err := meshservice.NewServeManager(restConfig, options, replica, func() {
		ready.ready()
		log.Info("ready")
	}, log)
	if err != nil {
		return err
	}
	ready.waitingFor("the kinds of the mesh to be served")
	served := kindsServed(mgr.GetRESTMapper(), mgr.GetScheme(), meshservice.ServedKinds())
	find := func(ctx context.Context) error {
		err := served(ctx)
		if notYet := (errNotYet{}); errors.As(err, &notYet) {
			return errNotYet{fmt.Errorf("%w; an operator that holds because of a Kuma control plane installs none: see `fairlead check`", err)}
		}
		return err
	}
	if err := retryTransient(ctx, log, startBackoff(), "find the kinds of the mesh", find); err != nil {
		return err
	}
	ready.waitingFor("the first configurations of proxies")
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("serve proxies: %w", err)
	}
	return nil
}

// newReplicaName is the name of this process, which no other one has: a container that is restarted keeps the name of its host.
func newReplicaName() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name this process: %w", err)
	}
	return replicaName(host, rand.String(5)), nil
}

// maxHostName leaves room for what makes the name of a process and of its reports, which are names of Kubernetes objects.
const maxHostName = 200

func replicaName(host, suffix string) string {
	valid := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(host))
	valid = strings.Trim(valid[:min(len(valid), maxHostName)], "-")
	return strings.TrimPrefix(valid+"-"+suffix, "-")
}
