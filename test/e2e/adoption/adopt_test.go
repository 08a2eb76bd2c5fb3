package adoption_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/takeover"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func labelled(object client.Object, key, value string) client.Object {
	object.SetLabels(map[string]string{key: value})
	return object
}

// selects checks the kinds that the policy of adopt selects, in its order.
func (s *stage) selects(t testing.TB, want ...string) *policyv1alpha1.PropagationPolicy {
	t.Helper()
	p := policyOn("adopted-member1", policyv1alpha1.Placement{})
	s.read(t, s.hub, p)
	var kinds []string
	for _, selector := range p.Spec.ResourceSelectors {
		kinds = append(kinds, selector.Kind)
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("the policy selects (-want +got)\n%s", diff)
	}
	return p
}

// Adopt takes what it is asked for, once each; asked for more, it extends its policy; and what cannot be adopted it refuses, with
// what to do.
func TestAdopt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	west := s.members[member1]
	port := corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}
	s.create(t, west, labelled(configMap("cart"), "app", "cart"), configMap("pay"), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cart"}, Spec: port})

	t.Run("a kind by two names, and a label", func(t *testing.T) {
		s.enter(t, 0, "adopt --cluster member1 -n NS --kind cm,configmaps -l app=cart --yes", "1 template written, 0 on the hub before")
		s.says(t, "cart-configmap", applied)
		s.selects(t, "ConfigMap")
	})
	t.Run("a further kind extends the policy, which keeps what a user has changed", func(t *testing.T) {
		s.changePolicy(t, s.selects(t, "ConfigMap"), preserve)
		s.enter(t, 0, "adopt --cluster member1 -n NS --kind services,configmaps -l app!=pay --yes", "2 templates written, 1 on the hub before")
		if p := s.selects(t, "ConfigMap", "Service"); p.Spec.PreserveResourcesOnDeletion == nil {
			t.Errorf("the policy says %+v", p.Spec)
		}
		for _, binding := range []string{"cart-service", "pay-configmap"} {
			s.says(t, binding, applied)
		}
	})
	t.Run("a policy that a user has written", func(t *testing.T) {
		s.create(t, s.hub, policyOn("own", to(member1), "nothing"))
		s.enter(t, 1, "adopt --cluster member1 -n NS --kind configmaps --policy own --yes",
			"PropagationPolicy NS/own exists already, and was not created for resources adopted from cluster member1: give another name with --policy")
	})
	t.Run("a kind in no namespace", func(t *testing.T) {
		s.enter(t, 1, "adopt --cluster member1 -n NS --kind namespaces --yes", "namespaces are cluster-scoped, and adopted by name only: name them, such as `fairlead adopt namespaces NAME --cluster member1`")
	})
	t.Run("a kind that the hub does not have", func(t *testing.T) {
		group := s.namespace + ".example.com"
		s.kubectlApply(t, west, widgetCRD(group))
		s.letHubManage(t, west, group)
		widget := parse(t, "{apiVersion: "+group+"/v1, kind: Widget, metadata: {name: it}}")
		widget.SetNamespace(s.namespace)
		wait.Until(t, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(west.Create(ctx, widget.DeepCopy()))
		})
		// The cluster takes a while to let the hub list a new kind.
		wait.Until(t, func(context.Context) error {
			r := harness.RunCommand(t, s.hub.Cluster, "adopt", "--cluster", member1, "-n", s.namespace, "--kind", "widgets."+group, "--yes")
			if r.Code != 1 || !strings.Contains(r.Stderr, "the hub has no kind Widget in "+group+"/v1: install its CRD on the hub, or name other kinds with --kind") {
				return errors.New(r.Stdout + r.Stderr)
			}
			return nil
		})
	})
	t.Run("a template that the hub refuses, until it is corrected", func(t *testing.T) {
		s.requireTeam(t, s.hub)
		s.create(t, west, configMap("late"), labelled(configMap("sure"), "team", "x"))
		s.enter(t, 1, "adopt --cluster member1 -n NS --kind configmaps --yes", "ConfigMap NS/late was not accepted: ", "say which team it is of",
			"1 template written, 2 on the hub before", "the hub did not accept 1 template: correct them and run it again")
		s.says(t, "sure-configmap", applied)
		late := configMap("late")
		s.change(t, west, late, func() { labelled(late, "team", "x") })
		s.enter(t, 0, "adopt --cluster member1 -n NS --kind configmaps --yes", "1 template written, 3 on the hub before")
		s.says(t, "late-configmap", applied)
	})
}

// Adopt takes single resources by name, and cluster-scoped ones with a policy of their own.
func TestAdoptByName(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	west := s.members[member1]
	s.create(t, west, configMap("cart", "a", "1"), configMap("pay", "a", "1"), configMap("checkout", "a", "1"))
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-team", Labels: map[string]string{"team": "a"}}}
	if err := west.Create(t.Context(), team); err != nil {
		t.Fatal(err)
	}
	clusterPolicy := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	t.Cleanup(func() {
		for _, object := range []client.Object{clusterPolicy, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team.Name}}} {
			if err := s.hub.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})

	s.enter(t, 0, "adopt configmap/cart --cluster member1 -n NS --yes", "1 template to write to the hub", "1 template written, 0 on the hub before")
	s.enter(t, 0, "adopt cm cart checkout --cluster member1 -n NS --yes", "1 template written, 1 on the hub before")
	for _, binding := range []string{"cart-configmap", "checkout-configmap"} {
		s.says(t, binding, applied)
	}
	s.selects(t, "ConfigMap")
	if err := s.hub.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "pay"}, configMap("pay")); !apierrors.IsNotFound(err) {
		t.Errorf("ConfigMap pay, which was not named: %v", err)
	}
	s.enter(t, 1, "adopt configmap/none --cluster member1 -n NS --yes", "ConfigMap NS/none does not exist in cluster member1")

	s.enter(t, 0, "adopt namespace/NS-team --cluster member1 --policy NS -o yaml", "kind: ClusterPropagationPolicy")
	s.enter(t, 0, "adopt namespace/NS-team --cluster member1 --policy NS --yes", "Cluster member1: 1 template to write to the hub",
		"ClusterPropagationPolicy NS takes over what runs", "clusterpropagationpolicy.policy.karmada.io/NS: 1 template written, 0 on the hub before",
		"To see the progress: fairlead status cpp NS")
	wait.Until(t, func(ctx context.Context) error {
		if err := s.hub.Get(ctx, client.ObjectKeyFromObject(clusterPolicy), clusterPolicy); err != nil {
			return err
		}
		return saying(clusterPolicy.Status.Conditions, policyv1alpha1.ConditionReady, clusterPolicy.Generation, "Applied", nil)
	})
	uid := team.UID
	if err := west.Get(t.Context(), client.ObjectKeyFromObject(team), team); err != nil || team.UID != uid || !isMarked(team) || team.Labels["team"] != "a" {
		t.Errorf("the namespace is %+v, %v", team.ObjectMeta, err)
	}
	s.enter(t, 0, "adopt namespace/NS-team --cluster member1 --policy NS --yes", "clusterpropagationpolicy.policy.karmada.io/NS: the hub has all of it already")
}

// Killed after any write, which it does not hear of any more, adopt is completed by the same command. The policy comes last:
// before it nothing happens in the cluster.
func TestAdoptKilledAtEveryWrite(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	const writes = 4 // the namespace, two templates, the policy
	for k := 1; k <= writes; k++ {
		s := &stage{w, cluster.Name(t)}
		west := s.members[member1]
		if err := west.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
			t.Fatal(err)
		}
		s.create(t, west, configMap("cart"), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cart"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		in := faults.New(faults.Rule{Match: faults.Write, Nth: k, Action: faults.CutAfter()})
		hub, err := client.New(in.Config(s.hub.Config()), client.Options{Scheme: s.hub.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		draft, err := takeover.Takeover{
			Cluster: member1, Namespace: s.namespace, Kinds: []string{"configmaps", "services"}, KindNamed: connect.MappingFor, Selector: labels.Everything(), Policy: "adopted-member1",
		}.Draft(t.Context(), hub)
		if err != nil || len(in.Log()) > 0 || len(draft.Templates) != 2 {
			t.Fatalf("a draft of %d templates wrote %s: %v", len(draft.Templates), in.Log(), err)
		}
		if _, err := draft.Write(t.Context(), hub, func(int) {}); err == nil || !in.Fired() {
			t.Fatalf("not killed at write %d: %v\n%s", k, err, in.Log())
		}
		if err := in.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		adopted := policyOn("adopted-member1", to(member1))
		err = s.hub.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: adopted.Name}, adopted)
		if k < writes && !apierrors.IsNotFound(err) || k == writes && err != nil {
			t.Errorf("killed at write %d, the policy: %v\n%s", k, err, in.Log())
		}
		if k < writes {
			s.enter(t, 0, "adopt --cluster member1 -n NS --kind configmaps,services --yes", "PropagationPolicy adopted-member1 takes over what runs")
		}
		s.enter(t, 0, "adopt --cluster member1 -n NS --kind configmaps,services --yes", "the hub has all of it already")
		for _, binding := range []string{"cart-configmap", "cart-service"} {
			s.says(t, binding, applied)
		}
	}
}
