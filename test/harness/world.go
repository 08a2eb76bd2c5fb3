package harness

import (
	"context"
	"errors"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

// World is a cluster as its administrator sees it, with an operator that has the permissions of the chart.
type World struct {
	*cluster.Cluster
	client.WithWatch
	// Operator is the one that StartOperator has started last.
	Operator *Operator
	// OperatorKubeconfig is the kubeconfig of the chart's ServiceAccount.
	OperatorKubeconfig string
	scratch            string
}

// NewWorld installs the permissions of the chart for these passages, or for all. The operator's kubeconfig and its home directory are in scratch.
func NewWorld(ctx context.Context, c *cluster.Cluster, scratch string, passages ...any) (*World, error) {
	w := &World{Cluster: c, scratch: scratch}
	var err error
	if w.WithWatch, err = NewAdminClient(c); err != nil {
		return nil, err
	}
	w.OperatorKubeconfig, err = InstallPermissions(ctx, c, w, scratch, passages...)
	return w, err
}

// StartOperator runs an operator as the chart's ServiceAccount. Flags override those that are always set.
func (w *World) StartOperator(flags ...string) error {
	always := []string{"--kubeconfig", w.OperatorKubeconfig, "--leader-elect=false", "--log-format=text"}
	var err error
	w.Operator, err = StartOperator(w.scratch, append(always, flags...)...)
	return err
}

// Shared is what all tests of a package use, started by the first test that asks for it.
type Shared[T any] struct {
	once  sync.Once
	value T
	err   error
}

// Get starts what the tests share, unless an earlier test has started it. The directory is removed when all tests have ended.
func (s *Shared[T]) Get(t testing.TB, start func(scratch string) (T, error)) T {
	t.Helper()
	s.once.Do(func() {
		s.err = errors.New("an earlier test failed to set up what the tests share")
		scratch, err := cluster.TempDir("fairlead-test")
		if err == nil {
			s.value, err = start(scratch)
		}
		s.err = err
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.value
}

// Value is the zero value if no test has asked.
func (s *Shared[T]) Value() T { return s.value }
