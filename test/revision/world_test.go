package revision_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/cluster"
	"github.com/fairlead/fairlead/test/launch"
	"github.com/fairlead/fairlead/test/wait"
)

// world is a cluster with an operator at work, as its administrator sees it.
type world struct {
	*cluster.Cluster
	client.WithWatch
	operator *process
}

var shared struct {
	once    sync.Once
	world   *world
	scratch string
	err     error
}

// theWorld is the one that the tests share. The operator's log of the test's time is shown if the test fails.
func theWorld(t testing.TB) *world {
	t.Helper()
	c, charts := cluster.Shared(t), cluster.Charts(t)
	shared.once.Do(func() {
		if shared.scratch, shared.err = os.MkdirTemp("", "revision-"); shared.err == nil {
			shared.world, shared.err = start(c, charts, shared.scratch)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.world.operator.ShowTo(t)
	return shared.world
}

// ownWorld is a cluster of the test's own, whose operator has other flags. With a --chart-dir or --chart-repository
// among them, the charts come from there.
func ownWorld(t testing.TB, flags ...string) *world {
	t.Helper()
	w, err := start(cluster.Start(t, cluster.Options{}), cluster.Charts(t), t.TempDir(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	w.operator.ShowTo(t)
	t.Cleanup(func() { w.operator.Kill() })
	return w
}

// start brings the chart's permissions into the cluster and runs the operator with them.
func start(c *cluster.Cluster, charts, scratch string, flags ...string) (*world, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	admin, err := launch.Administrator(c)
	if err != nil {
		return nil, err
	}
	w := &world{Cluster: c, WithWatch: admin}
	kubeconfig, err := launch.Permissions(ctx, c, admin, scratch)
	if err != nil {
		return nil, err
	}
	args := []string{"--kubeconfig", kubeconfig, "--leader-elect=false", "--log-format", "text"}
	if !given(flags, "--chart-dir") && !given(flags, "--chart-repository") {
		args = append(args, "--chart-dir", charts)
	}
	running, err := launch.Operator(scratch, append(args, flags...)...)
	if err != nil {
		return nil, err
	}
	w.operator = &process{running}
	return w, wait.Try(ctx, func(ctx context.Context) error {
		return errors.Join(
			w.operator.Alive(),
			w.List(ctx, &v1.IstioList{}), w.List(ctx, &v1.IstioRevisionList{}), w.List(ctx, &v1.IstioRevisionTagList{}),
		)
	})
}

func given(flags []string, name string) bool {
	return slices.ContainsFunc(flags, func(flag string) bool { return flag == name || strings.HasPrefix(flag, name+"=") })
}
