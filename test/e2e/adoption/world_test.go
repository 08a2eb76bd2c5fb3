package adoption_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// The names of the members on the hub: one is that of the design's examples.
const (
	member1 = "member1"
	member2 = "member2"
)

// site is a cluster as its administrator sees it.
type site struct {
	*cluster.Cluster
	client.WithWatch
}

// world is a hub with an operator, and the members that have joined.
type world struct {
	hub      *site
	members  map[string]*site
	operator *harness.Operator
	// kubeconfig is that of the operator, with what the chart allows it.
	kubeconfig, scratch string
	asked               atomic.Int32
}

var shared harness.Shared[*world]

// theWorld is the one that the tests share. What its operator logs in the test's time is shown if the test fails.
func theWorld(t testing.TB) *world {
	t.Helper()
	clusters := cluster.Several(t, map[string]cluster.Options{
		"hub": {Profile: "hub", KeepNamespaces: true}, member1: {KeepNamespaces: true}, member2: {KeepNamespaces: true},
	})
	w := shared.Get(t, func(scratch string) (*world, error) {
		return begin(t, clusters["hub"], map[string]*cluster.Cluster{member1: clusters[member1], member2: clusters[member2]}, scratch)
	})
	w.operator.KeepLogOnFailure(t)
	return w
}

// begin starts an operator on a hub, and has members join.
func begin(t testing.TB, hub *cluster.Cluster, members map[string]*cluster.Cluster, scratch string) (*world, error) {
	t.Helper()
	w := &world{members: map[string]*site{}, scratch: scratch}
	var err error
	if w.hub, err = newSite(hub); err != nil {
		return nil, err
	}
	if w.kubeconfig, err = harness.InstallPermissions(t.Context(), hub, w.hub, scratch, "adoption"); err != nil {
		return nil, err
	}
	if err := w.operate(t.Context()); err != nil {
		return nil, err
	}
	for name, c := range members {
		if w.members[name], err = newSite(c); err != nil {
			return nil, err
		}
		if r := harness.RunCommand(t, hub, "join", name, "--member-kubeconfig", c.Kubeconfig()); r.Code != 0 {
			return nil, errors.New(r.Stderr)
		}
	}
	for name := range members {
		if err := wait.Try(t.Context(), w.ready(name, metav1.ConditionTrue, "the API server responds")); err != nil {
			return nil, err
		}
		if err := w.awaitRole(t.Context(), name); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// awaitRole waits until a member lets the hub at its objects: a controller gives the role of the hub its rules, and the API server
// reads roles from a cache. A member that is ready need not have come to that.
func (w *world) awaitRole(ctx context.Context, name string) error {
	id, err := model.HubID(ctx, w.hub)
	if err != nil {
		return err
	}
	return harness.AwaitAuthorization(ctx, w.members[name], "system:serviceaccount:fairlead-member:hub-"+digest(id), metav1.NamespaceDefault, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"},
	})
}

func newSite(c *cluster.Cluster) (*site, error) {
	admin, err := harness.NewAdminClient(c)
	return &site{c, admin}, err
}

// operate starts an operator.
func (w *world) operate(ctx context.Context) error {
	var err error
	w.operator, err = harness.StartOperator(w.scratch, "--kubeconfig", w.kubeconfig, "--passages", "adoption", "--leader-elect=false", "--log-format", "text", harness.Scrapable, harness.Traces().Flag())
	if err != nil {
		return err
	}
	return wait.Try(ctx, func(context.Context) error { return w.operator.Ready() })
}

// ready looks at what the hub says of a member.
func (w *world) ready(name string, status metav1.ConditionStatus, says string) func(context.Context) error {
	return func(ctx context.Context) error {
		var c clusterv1alpha1.Cluster
		if err := w.hub.Get(ctx, client.ObjectKey{Name: name}, &c); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
		if condition == nil || condition.Status != status || !strings.Contains(condition.Message, says) {
			return fmt.Errorf("Cluster %s says %+v, and not %s, %q", name, condition, status, says)
		}
		return nil
	}
}

// becomes waits until the hub says this of a member, and has it asked at once rather than in its turn.
func (w *world) becomes(t testing.TB, name string, status metav1.ConditionStatus, says string) {
	t.Helper()
	is := w.ready(name, status, says)
	wait.Until(t, func(ctx context.Context) error {
		if err := is(ctx); err != nil {
			return errors.Join(err, w.ask(ctx, name))
		}
		return nil
	})
}

// ask has the operator look at a Cluster, which it does when labels change.
func (w *world) ask(ctx context.Context, name string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"example.com/asked":"%d"}}}`, w.asked.Add(1))
	return w.hub.Patch(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch(types.MergePatchType, patch))
}

// stage is a namespace of a test's own, on the hub and in the members.
type stage struct {
	*world
	namespace string
}

func newStage(t testing.TB) *stage {
	t.Helper()
	w := theWorld(t)
	s := &stage{w, w.hub.Namespace(t)}
	for _, m := range w.members {
		if err := m.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// cut kills the API server of a cluster, and gives what brings it back.
func (s *site) cut(t testing.TB) (heal func()) {
	t.Helper()
	s.KillAPIServer(t)
	// Until it is known to be dead, there is nothing to bring back.
	wait.Until(t, func(context.Context) error {
		if _, err := cluster.Localkube("status", "--dir", s.Dir); err == nil {
			return errors.New("its death has not been noticed")
		}
		return nil
	})
	healed := false
	heal = func() {
		if healed {
			return
		}
		healed = true
		if _, err := cluster.Localkube("up", "--dir", s.Dir, "--until-exit-of", strconv.Itoa(os.Getpid())); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(heal)
	return heal
}
