package rollout_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/test/cluster"
	"github.com/fairlead/fairlead/test/environmentd"
	"github.com/fairlead/fairlead/test/launch"
	"github.com/fairlead/fairlead/test/wait"
)

// world is a cluster as its administrator sees it, and all environmentds in it.
type world struct {
	*cluster.Cluster
	client.WithWatch
	fleet *environmentd.Fleet
	// config is that of the operator.
	config *rest.Config
	// converts: the operator brings the CRD, and converts between its versions.
	converts bool
}

var shared struct {
	once    sync.Once
	world   *world
	life    *life
	scratch string
	err     error
}

// theWorld is the one that the tests share, with an operator at work. What that logs in the test's time is shown if the
// test fails.
func theWorld(t testing.TB) *world {
	t.Helper()
	c := cluster.Shared(t)
	shared.once.Do(func() {
		if shared.scratch, shared.err = os.MkdirTemp("", "rollout-"); shared.err != nil {
			return
		}
		if shared.world, shared.err = prepare(c, shared.scratch); shared.err == nil {
			shared.life = shared.world.begin(faults.New())
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.life.showTo(t)
	return shared.world
}

// ownWorld is a cluster of the test's own, with, as yet, no operator.
func ownWorld(t testing.TB) *world {
	t.Helper()
	w, err := prepare(cluster.Start(t, cluster.Options{}), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.fleet.Close)
	return w
}

// convertingWorld is one whose operator does all that it does outside of tests.
func convertingWorld(t testing.TB) *world {
	t.Helper()
	w, err := enter(cluster.Start(t, cluster.Options{}), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.converts = true
	t.Cleanup(w.fleet.Close)
	return w
}

// prepare gives a cluster what the operator may do, and the CRD. Of its versions, one is used, and nothing converted.
func prepare(c *cluster.Cluster, scratch string) (*world, error) {
	w, err := enter(c, scratch)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	all, err := crds.Named("materializes.materialize.cloud")
	if err != nil {
		return nil, err
	}
	for _, crd := range all {
		if err := w.Create(ctx, crd); client.IgnoreAlreadyExists(err) != nil {
			return nil, fmt.Errorf("create CRD %s: %w", crd.Name, err)
		}
	}
	return w, wait.Try(ctx, func(ctx context.Context) error { return w.List(ctx, &v1alpha2.MaterializeList{}) })
}

// enter gives a cluster what the operator may do.
func enter(c *cluster.Cluster, scratch string) (*world, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	w := &world{Cluster: c, fleet: environmentd.Start()}
	var err error
	if w.WithWatch, err = launch.Administrator(c); err != nil {
		return nil, err
	}
	kubeconfig, err := launch.Permissions(ctx, c, w, scratch)
	if err != nil {
		return nil, err
	}
	w.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	return w, err
}

// run is an operator, until the context ends.
func (w *world) run(ctx context.Context, config *rest.Config, log logr.Logger) error {
	options := operator.DefaultOptions()
	options.Passages = []string{rollout.Name}
	options.InstallCRDs, options.LeaderElection = w.converts, false
	options.HealthProbeBindAddress, options.MetricsBindAddress = "0", "0"
	if !w.converts {
		options.Webhook.BindAddress = "0"
	}
	options.Rollout.EnvironmentdURL = w.fleet.URL()
	return operator.Run(ctx, config, options, log)
}

// life is that of an operator.
type life struct {
	in    *faults.Injector
	stop  context.CancelFunc
	ended chan struct{}
	log   *journal
}

// begin starts an operator, whose line to the API server can be cut.
func (w *world) begin(in *faults.Injector) *life {
	ctx, stop := context.WithCancel(context.Background())
	l := &life{in: in, stop: stop, ended: make(chan struct{}), log: &journal{}}
	go func() {
		defer close(l.ended)
		log := logr.FromSlogHandler(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
		if err := w.run(ctx, in.Config(w.config), log); err != nil {
			fmt.Fprintln(l.log, "the operator ended:", err)
		}
	}()
	return l
}

// live starts an operator for the test.
func (w *world) live(t testing.TB) *life {
	t.Helper()
	l := w.begin(faults.New())
	l.showTo(t)
	t.Cleanup(l.end)
	return l
}

// kill ends the operator as a power cut would.
func (l *life) kill() {
	l.in.Cut()
	l.end()
}

func (l *life) end() {
	l.stop()
	<-l.ended
	l.in.Cut()
}

func (l *life) showTo(t testing.TB) {
	began := l.log.len()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the operator's log in the time of this test:\n%s", l.log.since(began))
		}
	})
}

// journal is text that is still being written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Len()
}

func (j *journal) since(offset int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return string(j.text.Bytes()[offset:])
}
