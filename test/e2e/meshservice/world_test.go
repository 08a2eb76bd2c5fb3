package meshservice_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// never is how long a proxy may take to acknowledge that it was switched: an operator must not give up on one that is only
// slow.
const never = "24h"

// The zones: proxies are served in one, and see the other through its ingress.
const (
	east = "east"
	west = "west"
)

// system is where what comes from other zones is.
const system = "kuma-system"

// operatorHost is where the operator serves proxies. No connection is made from that address, unlike from 127.0.0.1, so that nobody
// takes the port of an operator that was killed before the next one has it.
const operatorHost = "127.7.0.2"

// world is a cluster with an operator.
type world struct {
	*harness.World
	stages atomic.Int32
}

var shared harness.Shared[*world]

// theWorld is the one that the tests share. What its operator logs in the test's time is shown if the test fails.
func theWorld(t testing.TB) *world {
	t.Helper()
	c := cluster.Shared(t)
	w := shared.Get(t, func(scratch string) (*world, error) { return begin(t.Context(), c, scratch) })
	w.Operator.KeepLogOnFailure(t)
	return w
}

func begin(ctx context.Context, c *cluster.Cluster, scratch string) (*world, error) {
	w := &world{}
	var err error
	if w.World, err = harness.NewWorld(ctx, c, scratch, "meshservice"); err != nil {
		return nil, err
	}
	if err := w.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}); client.IgnoreAlreadyExists(err) != nil {
		return nil, err
	}
	return w, w.operate(ctx, "--mesh-insecure")
}

// serving is what an operator says in its log when it serves proxies, which it does from the first Mesh on.
var serving = regexp.MustCompile(`msg="serving proxies" .*\baddress=(\S+)`)

// operate starts an operator; the flags say how proxies prove who they are, and count more than the usual ones.
func (w *world) operate(ctx context.Context, flags ...string) error {
	err := w.StartOperator(append([]string{
		"--passages", "meshservice", "--mesh-zone", east, "--mesh-bind-address", operatorHost + ":0", "--mesh-switch-timeout", never, harness.Scrapable, harness.Traces().Flag(),
	}, flags...)...)
	if err != nil {
		return err
	}
	return wait.Try(ctx, func(context.Context) error { return w.Operator.Ready() })
}

// servesAt waits until the operator serves proxies, and says where.
func (w *world) servesAt(t testing.TB) string {
	t.Helper()
	var found []string
	wait.Until(t, func(context.Context) error {
		if found = serving.FindStringSubmatch(w.Operator.Log.Since(0)); found == nil {
			return errors.Join(w.Operator.Alive(), errors.New("the operator serves no proxies"))
		}
		return nil
	})
	return found[1]
}

// again ends the operator as a power cut would, and starts one with other flags.
func (w *world) again(t testing.TB, flags ...string) {
	t.Helper()
	w.Operator.Kill()
	if err := w.operate(t.Context(), flags...); err != nil {
		t.Fatal(err)
	}
	w.Operator.KeepLogOnFailure(t)
}

// stage is a mesh and a namespace of a test's own, and the addresses of its pods.
type stage struct {
	*world
	mesh, namespace string
	number          int32
	addresses       atomic.Int32
}

// newStage has a Mesh of that mode, or, without one, a Mesh that says nothing of MeshServices.
func newStage(t testing.TB, mode kumav1alpha1.Mode) *stage {
	t.Helper()
	w := theWorld(t)
	namespace := w.Namespace(t)
	s := &stage{world: w, mesh: namespace, namespace: namespace, number: w.stages.Add(1)}
	s.join(t, namespace)
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: s.mesh}}
	if mode != "" {
		mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: mode}
	}
	if err := w.Create(t.Context(), mesh); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := w.Delete(context.Background(), mesh); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return s
}

// join makes a namespace part of the test's mesh.
func (s *stage) join(t testing.TB, namespace string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q,%q:%q}}}`,
		kumav1alpha1.LabelSidecarInjection, kumav1alpha1.InjectionEnabled, kumav1alpha1.LabelMesh, s.mesh)
	if err := s.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
}

// address is one of the loopback interface that no other pod has.
func (s *stage) address() string {
	return fmt.Sprintf("127.7.%d.%d", s.number, s.addresses.Add(1))
}
