package rollout_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// world is a cluster with an operator, and all environmentds in it.
type world struct {
	*harness.World
	fleet *environmentd.Fleet
}

var shared harness.Shared[*world]

// theWorld is the one that the tests share, with an operator at work. What that logs in the test's time is kept if the
// test fails.
func theWorld(t testing.TB) *world {
	t.Helper()
	c := cluster.Shared(t)
	w := shared.Get(t, func(scratch string) (*world, error) { return prepare(c, scratch) })
	w.Operator.KeepLogOnFailure(t)
	return w
}

// prepare gives a cluster what the operator may do, and starts it.
func prepare(c *cluster.Cluster, scratch string) (*world, error) {
	// Each of its steps has a deadline of its own.
	ctx, cancel := context.WithTimeout(context.Background(), 2*wait.Deadline())
	defer cancel()
	w := &world{fleet: environmentd.Start()}
	var err error
	if w.World, err = harness.NewWorld(ctx, c, scratch, "rollout"); err != nil {
		return nil, err
	}
	return w, w.start(ctx)
}

// start runs an operator as its users do: it installs the CRD, converts between its versions, and rolls out. It waits for
// environmentds for as long as it takes, because tests hold their answers.
func (w *world) start(ctx context.Context) error {
	err := w.StartOperator("--passages", rollout.Name, "--leader-election-namespace=fairlead-system",
		"--environmentd-url", w.fleet.URL(), "--environmentd-timeout=1h",
		"--health-probe-bind-address=0", "--metrics-bind-address=0", harness.Scrapable, harness.Traces().Flag())
	if err != nil {
		return err
	}
	return wait.Try(ctx, func(ctx context.Context) error {
		return errors.Join(w.Operator.Alive(), w.List(ctx, &v1alpha2.MaterializeList{}))
	})
}

// restart runs another operator in place of one that was killed.
func (w *world) restart(t testing.TB) {
	t.Helper()
	if err := w.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Operator.KeepLogOnFailure(t)
}
