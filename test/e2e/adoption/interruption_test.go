package adoption_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// newcomer is a cluster that joins the hub, and leaves it, while the operator of the hub runs.
type newcomer struct {
	*world
	site *site
	id   string
}

// newcomerName is the name under which it joins.
const newcomerName = "newcomer"

func newNewcomer(t testing.TB) *newcomer {
	t.Helper()
	other := cluster.Several(t, map[string]cluster.Options{"second hub": {Profile: "hub", KeepNamespaces: true}})["second hub"]
	n := &newcomer{world: theWorld(t)}
	var err error
	if n.site, err = newSite(other); err != nil {
		t.Fatal(err)
	}
	if n.id, err = model.HubID(t.Context(), n.hub); err != nil {
		t.Fatal(err)
	}
	return n
}

// connect gives a command its access to the hub and to the cluster. Faults happen to the writes of both, which are counted as one.
func (n *newcomer) connect(config *rest.Config) (client.Client, *rest.Config, error) {
	hub, err := client.New(config, client.Options{Scheme: n.hub.Scheme()})
	access := n.site.Config()
	access.WrapTransport = config.WrapTransport
	return hub, access, err
}

func (n *newcomer) join(ctx context.Context, config *rest.Config) error {
	hub, access, err := n.connect(config)
	if err != nil {
		return err
	}
	return member.Join(ctx, hub, n.id, newcomerName, access)
}

// unjoin is done when there is nothing to do any more.
func (n *newcomer) unjoin(ctx context.Context, config *rest.Config) error {
	hub, access, err := n.connect(config)
	if err != nil {
		return err
	}
	_, err = member.Unjoin(ctx, hub, n.id, newcomerName, member.UnjoinOptions{Member: access})
	if err != nil && strings.HasPrefix(err.Error(), "no cluster has joined as "+newcomerName) {
		return nil
	}
	return err
}

// leave ends a membership, also after a test that failed: other tests have the hub too.
func (n *newcomer) leave(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Deadline())
	defer cancel()
	if err := n.unjoin(ctx, n.hub.Config()); err != nil {
		t.Error(err)
	}
	wait.Until(t, n.hasLeft)
}

// hasLeft looks whether anything is left, on the hub or in the cluster.
func (n *newcomer) hasLeft(ctx context.Context) error {
	if err := n.leftHub(ctx, newcomerName); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fairlead-member"}}
	if err := n.site.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
		return errors.Join(errors.New("namespace fairlead-member is still there"), err)
	}
	return nil
}

// snapshot is what there is of a membership, on the hub and in the cluster.
func (n *newcomer) snapshot(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	named := client.MatchingFields{"metadata.name": newcomerName}
	labelled := client.MatchingLabels{"app.kubernetes.io/part-of": "fairlead"}
	core, rbac := corev1.SchemeGroupVersion, rbacv1.SchemeGroupVersion
	for _, dump := range []struct {
		faults.Dump
		of *site
	}{
		{faults.Dump{Kinds: []schema.GroupVersionKind{clusterv1alpha1.GroupVersion.WithKind("Cluster")}, In: []client.ListOption{named}, Scrub: scrubMembership}, n.hub},
		{faults.Dump{Kinds: []schema.GroupVersionKind{core.WithKind("Secret")}, In: []client.ListOption{named, client.InNamespace("karmada-cluster")}, Scrub: scrubMembership}, n.hub},
		{faults.Dump{
			Kinds: []schema.GroupVersionKind{
				core.WithKind("Namespace"), core.WithKind("ServiceAccount"), rbac.WithKind("Role"), rbac.WithKind("RoleBinding"),
				rbac.WithKind("ClusterRole"), rbac.WithKind("ClusterRoleBinding"),
			},
			In: []client.ListOption{labelled}, Scrub: scrubMembership,
		}, n.site},
	} {
		objects, err := dump.Snapshot(ctx, dump.of)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, objects)
	}
	return all, nil
}

// scrubMembership removes the token, what the operator reports, and who wrote which field.
func scrubMembership(object *unstructured.Unstructured) {
	for _, path := range [][]string{{"status"}, {"metadata", "managedFields"}, {"metadata", "generation"}} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	if token, _, _ := unstructured.NestedString(object.Object, "data", "token"); token != "" {
		_ = unstructured.SetNestedField(object.Object, "something", "data", "token")
	}
}

// disturb kills a command at some of its writes, or at every one in full.
func (n *newcomer) disturb(t *testing.T, setup func(testing.TB) faults.World, rerunWrites bool) {
	t.Helper()
	faults.DisturbEveryWrite(t, faults.Scenario{
		Config: n.hub.Config(), Setup: setup, RestartWrites: rerunWrites,
		// A token that is requested is no object, but the command may die there as well.
		Counted: faults.Request.Writes, Pick: faults.Sample(4, faults.To("secrets")),
	}, faults.Kills()...)
}

// A join that is killed at any write, on the hub or in the cluster, ends in the same place when it is run again: the operator
// reaches the cluster.
func TestJoinInterrupted(t *testing.T) {
	n := newNewcomer(t)
	n.disturb(t, func(t testing.TB) faults.World {
		return faults.World{
			Run: n.join, Snapshot: n.snapshot, Settled: n.ready(newcomerName, metav1.ConditionTrue, "the API server responds"),
			Teardown: func() { n.leave(t) },
		}
	}, true)
}

// An unjoin that is killed at any write leaves nothing when it is run again, neither on the hub nor in the cluster.
func TestUnjoinInterrupted(t *testing.T) {
	n := newNewcomer(t)
	n.disturb(t, func(t testing.TB) faults.World {
		if err := n.join(t.Context(), n.hub.Config()); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, n.ready(newcomerName, metav1.ConditionTrue, "the API server responds"))
		return faults.World{Run: n.unjoin, Settled: n.hasLeft, Teardown: func() { n.leave(t) }, Snapshot: func(ctx context.Context) (map[string]string, error) {
			left, err := n.snapshot(ctx)
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("there is %v", left)
			}
			return left, err
		}}
	}, false)
}
