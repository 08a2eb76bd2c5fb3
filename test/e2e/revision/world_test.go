package revision_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// world is a cluster with an operator at work.
type world struct {
	*harness.World
	operator *process
	// charts is the directory of the operator's charts, to which tests add.
	charts string
}

var shared harness.Shared[*world]

// theWorld is the one that the tests share. The operator's log of the test's time is shown if the test fails.
func theWorld(t testing.TB) *world {
	t.Helper()
	c, charts := cluster.Shared(t), cluster.Charts(t)
	w := shared.Get(t, func(scratch string) (*world, error) {
		links := filepath.Join(scratch, "charts")
		if err := linkCharts(charts, links); err != nil {
			return nil, err
		}
		w, err := start(c, links, scratch)
		if err != nil {
			return nil, err
		}
		return w, w.install(makeAnchor())
	})
	w.operator.KeepLogOnFailure(t)
	return w
}

// linkCharts makes a directory with links to all charts of another.
func linkCharts(from, to string) error {
	versions, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, version := range versions {
		if err := os.Symlink(filepath.Join(from, version.Name()), filepath.Join(to, version.Name())); err != nil {
			return err
		}
	}
	return nil
}

// makeAnchor is a revision that stays, and its namespace. It looks after what all revisions share, so that the others need
// not, and there is not much of that: without Istio's CRDs, which take the API server longer than all the rest, and with an
// istiod that runs elsewhere.
func makeAnchor() (*corev1.Namespace, *v1.IstioRevision) {
	const name = "anchor"
	anchor := makeRevision(name, name, "v1.31.1")
	anchor.Spec.Values = v1.Values{"base": withoutCRDs(), "istiodRemote": map[string]any{"enabled": true}}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, anchor
}

// withoutCRDs are values of the base chart.
func withoutCRDs() map[string]any { return map[string]any{"enableCRDTemplates": false} }

// install makes a revision in a namespace and waits until it is ready.
func (w *world) install(namespace *corev1.Namespace, revision *v1.IstioRevision) error {
	ctx := context.Background()
	for _, object := range []client.Object{namespace, revision} {
		if err := w.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	return wait.Try(ctx, func(ctx context.Context) error { return w.is(ctx, revision, v1.ConditionReady) })
}

// start brings the chart's permissions into the cluster and runs the operator with them.
func start(c *cluster.Cluster, charts, scratch string, flags ...string) (*world, error) {
	ctx := context.Background()
	w := &world{charts: charts}
	var err error
	if w.World, err = harness.NewWorld(ctx, c, scratch, "revision"); err != nil {
		return nil, err
	}
	args := []string{"--passages=revision"}
	if !given(flags, "--chart-dir") && !given(flags, "--chart-repository") {
		args = append(args, "--chart-dir", charts)
	}
	if err := w.StartOperator(append(args, flags...)...); err != nil {
		return nil, err
	}
	w.operator = &process{w.Operator}
	return w, wait.Try(ctx, func(ctx context.Context) error { return errors.Join(w.operator.Alive(), w.served(ctx)) })
}

// served is an error while the API server does not serve all kinds. It takes a moment to tell of those of new CRDs.
func (w *world) served(ctx context.Context) error {
	return errors.Join(w.List(ctx, &v1.IstioList{}), w.List(ctx, &v1.IstioRevisionList{}), w.List(ctx, &v1.IstioRevisionTagList{}))
}

func given(flags []string, name string) bool {
	return slices.ContainsFunc(flags, func(flag string) bool { return flag == name || strings.HasPrefix(flag, name+"=") })
}
