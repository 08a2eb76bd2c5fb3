package adoption_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// secondHub is a hub without an operator, which the first member of the other one has joined, too.
func secondHub(t testing.TB) *world {
	t.Helper()
	hub := cluster.Several(t, map[string]cluster.Options{"second hub": {Profile: "hub", KeepNamespaces: true}})["second hub"]
	first := theWorld(t)
	w := &world{members: map[string]*site{member1: first.members[member1]}, scratch: t.TempDir()}
	var err error
	if w.hub, err = newSite(hub); err != nil {
		t.Fatal(err)
	}
	if _, err := crds.Install(t.Context(), hub.Config(), crds.Options{Log: logr.Discard(), Timeout: wait.Deadline()}); err != nil {
		t.Fatal(err)
	}
	// A kind that is established may not be served yet.
	wait.Until(t, func(ctx context.Context) error {
		for _, list := range []client.ObjectList{
			&clusterv1alpha1.ClusterList{}, &policyv1alpha1.PropagationPolicyList{}, &policyv1alpha1.ClusterPropagationPolicyList{},
			&workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}, &workv1alpha1.WorkList{},
		} {
			if err := w.hub.List(ctx, list, client.Limit(1)); err != nil {
				return err
			}
		}
		return nil
	})
	r := harness.RunCommand(t, hub, "clusters")
	if r.Code == 0 && strings.Contains(r.Stdout, "No cluster has joined") {
		r = harness.RunCommand(t, hub, "join", member1, "--member-kubeconfig", first.members[member1].Kubeconfig())
	}
	if r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	return w
}

// An object that one hub manages stays that hub's, whatever another one asks for: each write to it is the first hub's.
func TestTwoHubs(t *testing.T) {
	t.Parallel()
	first := newStage(t)
	w := secondHub(t)
	var err error
	if w.kubeconfig, err = harness.InstallPermissions(t.Context(), w.hub.Cluster, w.hub, w.scratch, "adoption"); err != nil {
		t.Fatal(err)
	}
	if err := w.operate(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.operator.Kill)
	w.operator.KeepLogOnFailure(t)
	second := &stage{w, first.namespace}
	if err := w.hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second.namespace}}); err != nil {
		t.Fatal(err)
	}
	member := first.members[member1]
	first.create(t, first.hub, deployment("it"), policy("apps/v1", "Deployment"))
	first.says(t, "it-deployment", applied)
	before := first.running(t, member, "it")

	template := deployment("it")
	template.Spec.MinReadySeconds = 2
	second.create(t, second.hub, template, policy("apps/v1", "Deployment", overwrite))
	says := "Deployment " + first.namespace + "/it in cluster member1 is managed by another hub, and is left alone: release the object from that hub, or delete the object in the cluster"
	second.trouble(t, member1, "it-deployment", "everything", conflict, says)

	t.Run("the first goes on, and the second has no say", func(t *testing.T) {
		second.change(t, second.hub, template, func() { template.Spec.MinReadySeconds = 3 })
		own := deployment("it")
		first.change(t, first.hub, own, func() { own.Spec.MinReadySeconds = 1 })
		second.manifest(t, member1, "it-deployment", func(m *unstructured.Unstructured) error {
			if seconds, _, _ := unstructured.NestedInt64(m.Object, "spec", "minReadySeconds"); seconds != 3 {
				return fmt.Errorf("its Work says %d", seconds)
			}
			return nil
		})
		second.processed(t, member1, "it-deployment", conflict)
		second.says(t, "it-deployment", conflict, says)
		now := deployment("it")
		first.until(t, member, now, minReady(now, 1))
		if now.Generation != before.Generation+1 {
			t.Errorf("generation %d became %d with one change of the first hub", before.Generation, now.Generation)
		}
	})
	t.Run("what the second deletes stays", func(t *testing.T) {
		second.remove(t, second.hub, deployment("it"))
		second.released(t, "it-deployment")
		now := first.running(t, member, "it")
		if now.UID != before.UID || !isMarked(now) {
			t.Errorf("it is another one, with labels %v", now.Labels)
		}
	})
}
