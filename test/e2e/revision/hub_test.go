package revision_test

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// hubNamespace is there for control planes on a hub.
const hubNamespace = "istio-system"

// newHub is a cluster of the test's own in which nothing runs, and no operator yet.
func newHub(t testing.TB) *world {
	t.Helper()
	w := &world{World: &harness.World{Cluster: cluster.Start(t, cluster.Options{Profile: "hub"})}}
	names := []string{"istios.sailoperator.io", "istiorevisions.sailoperator.io", "istiorevisiontags.sailoperator.io"}
	if _, err := crds.Install(t.Context(), w.Config(), crds.Options{Names: names, Timeout: wait.Deadline()}); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.WithWatch, err = harness.NewAdminClient(w.Cluster); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, w.served)
	w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubNamespace}})
	return w
}

// make is for what goes with the cluster.
func (w *world) make(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := w.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// operate runs an operator as the chart's ServiceAccount until the test ends, in the place of one that was there before.
func (w *world) operate(t testing.TB, flags ...string) {
	t.Helper()
	started, err := start(w.Cluster, cluster.Charts(t), t.TempDir(), append(flags, "--leader-elect=false")...)
	if err != nil {
		t.Fatal(err)
	}
	w.operator = started.operator
	w.operator.KeepLogOnFailure(t)
	t.Cleanup(started.operator.Kill)
}

// serve says of Deployments what nobody else would on a hub: that their pods run, unless they never should.
func (w *world) serve(ctx context.Context) error {
	var list appsv1.DeploymentList
	if err := w.List(ctx, &list); err != nil {
		return err
	}
	var failed []error
	for _, d := range list.Items {
		never := d.Spec.Template.Annotations[cluster.ReadyAfter] == cluster.Never
		if d.Status.ObservedGeneration == d.Generation || never {
			continue
		}
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		}
		failed = append(failed, w.Status().Update(ctx, &d))
	}
	return errors.Join(failed...)
}

// keepServing does so until the test ends.
func (w *world) keepServing(t testing.TB) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() {
		stop()
		<-done
	})
	go func() {
		defer close(done)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-tick.C:
				// Whoever waits for it sees that it did not work.
				_ = w.serve(ctx)
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	}()
}

// undisturbed lets an operator work until something has come true.
func (w *world) undisturbed(t testing.TB, until func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	run := harness.InProcessOperator(t, v1.PassageRevision)
	go func() { ended <- run(ctx, w.Config()) }()
	err := wait.Try(ctx, until)
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
}
