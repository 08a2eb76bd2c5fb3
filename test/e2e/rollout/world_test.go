package rollout_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// world is a cluster as its administrator sees it, its operator, and all environmentds in it.
type world struct {
	*cluster.Cluster
	client.WithWatch
	fleet *environmentd.Fleet
	// kubeconfig is that of the operator, and scratch its home.
	kubeconfig, scratch string
	operator            *harness.Operator
}

var shared struct {
	once    sync.Once
	world   *world
	scratch string
	err     error
}

// theWorld is the one that the tests share, with an operator at work. What that logs in the test's time is kept if the
// test fails.
func theWorld(t testing.TB) *world {
	t.Helper()
	c := cluster.Shared(t)
	shared.once.Do(func() {
		if shared.scratch, shared.err = os.MkdirTemp("", "rollout-"); shared.err == nil {
			shared.world, shared.err = prepare(c, shared.scratch)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.world.operator.KeepLogOnFailure(t)
	return shared.world
}

// prepare gives a cluster what the operator may do, and starts it.
func prepare(c *cluster.Cluster, scratch string) (*world, error) {
	// Each of its steps has a deadline of its own.
	ctx, cancel := context.WithTimeout(context.Background(), 2*wait.Deadline())
	defer cancel()
	w := &world{Cluster: c, fleet: environmentd.Start(), scratch: scratch}
	var err error
	if w.WithWatch, err = harness.NewAdminClient(c); err != nil {
		return nil, err
	}
	if w.kubeconfig, err = harness.InstallPermissions(ctx, c, w, scratch); err != nil {
		return nil, err
	}
	return w, w.start(ctx)
}

// start runs an operator as its users do: it installs the CRD, converts between its versions, and rolls out. It waits for
// environmentds for as long as it takes, because tests hold their answers.
func (w *world) start(ctx context.Context) (err error) {
	w.operator, err = harness.StartOperator(w.scratch, "--kubeconfig", w.kubeconfig, "--log-format=text",
		"--passages", rollout.Name, "--leader-elect=false", "--leader-election-namespace=fairlead-system",
		"--environmentd-url", w.fleet.URL(), "--environmentd-timeout=1h",
		"--health-probe-bind-address=0", "--metrics-bind-address=0")
	if err != nil {
		return err
	}
	return wait.Try(ctx, func(ctx context.Context) error {
		return errors.Join(w.operator.Alive(), w.List(ctx, &v1alpha2.MaterializeList{}))
	})
}

// restart runs another operator in place of one that was killed.
func (w *world) restart(t testing.TB) {
	t.Helper()
	if err := w.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.operator.KeepLogOnFailure(t)
}
