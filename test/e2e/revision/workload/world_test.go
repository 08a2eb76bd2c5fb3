package workload_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/injector"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// system is the namespace of control planes with an istiod, and policySystem of those where the API server plays the injector.
const (
	system       = "istio-system"
	policySystem = "istio-policy"
)

// world is a cluster with an operator at work.
type world struct {
	*harness.World
	// operators are all that were started here.
	operators []*harness.Operator
}

var shared harness.Shared[*world]

// theWorld is the one that the tests share. The operator's log of the test's time is shown if the test fails.
func theWorld(t testing.TB) *world {
	t.Helper()
	c, charts := cluster.Shared(t), cluster.Charts(t)
	w := shared.Get(t, func(scratch string) (*world, error) {
		w, err := prepare(c, scratch)
		if err != nil {
			return nil, err
		}
		return w, errors.Join(w.operate(charts), w.anchor())
	})
	w.Operator.KeepLogOnFailure(t)
	return w
}

// restart kills the operator that the tests share, if it is still there, and starts it again.
func (w *world) restart(t testing.TB) {
	t.Helper()
	w.Operator.Kill()
	if err := w.operate(cluster.Charts(t)); err != nil {
		t.Fatal(err)
	}
	w.Operator.KeepLogOnFailure(t)
}

// ownWorld is a cluster of the test's own, with no istiod and, as yet, no operator.
func ownWorld(t testing.TB) *world {
	t.Helper()
	w, err := prepare(cluster.Start(t, cluster.Options{}), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// start runs an operator for the test, in the place of one that was there before.
func (w *world) start(t testing.TB) {
	t.Helper()
	if err := w.operate(cluster.Charts(t)); err != nil {
		t.Fatal(err)
	}
	w.Operator.KeepLogOnFailure(t)
	t.Cleanup(w.Operator.Kill)
}

// prepare gives a cluster what the operator may do, and sidecars.
func prepare(c *cluster.Cluster, scratch string) (*world, error) {
	ctx := context.Background()
	w := &world{}
	var err error
	if w.World, err = harness.NewWorld(ctx, c, scratch, "revision"); err != nil {
		return nil, err
	}
	for name, labels := range map[string]map[string]string{system: nil, policySystem: {injector.Label: injector.Policy}} {
		home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if err := w.Create(ctx, home); client.IgnoreAlreadyExists(err) != nil {
			return nil, fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return w, injector.Install(ctx, w)
}

// operate starts an operator and waits until it is ready.
func (w *world) operate(charts string) error {
	if err := w.StartOperator("--chart-dir", charts, "--passages=revision", harness.Scrapable, harness.Traces().Flag()); err != nil {
		return err
	}
	w.operators = append(w.operators, w.Operator)
	return wait.Try(context.Background(), func(ctx context.Context) error {
		return errors.Join(
			w.Operator.Ready(),
			w.List(ctx, &v1.IstioList{}), w.List(ctx, &v1.IstioRevisionList{}), w.List(ctx, &v1.IstioRevisionTagList{}),
		)
	})
}

// anchor is a revision that stays, of the newest version there is. It looks after what all revisions share, so that no
// other one has to wait for that, and there is not much of it: sidecars need none of Istio's CRDs, which are slow to come.
func (w *world) anchor() error {
	ctx := context.Background()
	anchor := &v1.IstioRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "anchor"},
		Spec:       v1.IstioRevisionSpec{Version: "v1.31.1", Namespace: system, Values: runsElsewhere()},
	}
	anchor.Spec.Values["base"] = map[string]any{"enableCRDTemplates": false}
	if err := w.Create(ctx, anchor); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create the anchor: %w", err)
	}
	return wait.Try(ctx, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(anchor), anchor); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(anchor.Status.Conditions, string(v1.ConditionReady)) {
			return fmt.Errorf("the anchor is not ready:%s", harness.DescribeConditions(anchor.Status.Conditions))
		}
		return nil
	})
}
