package adoption_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/test/harness"
)

// A policy with a field that is not supported writes nothing. One that gets such a field stops, and goes on without the field.
func TestUnsupportedField(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	failover := func(p *policyv1alpha1.PropagationSpec) { p.Failover = &policyv1alpha1.FailoverBehavior{} }
	p := policy("v1", "ConfigMap", failover)
	template := configMap("it", "a", "1")
	s.create(t, s.hub, template, p)
	const says = "spec.failover is not supported: remove the field"
	s.says(t, "it-configmap", "UnsupportedField", says)
	s.tells(t, p.Name, "UnsupportedField", says)
	now := configMap("it")
	if err := s.members[member1].Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "it"}, now); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
	if r := harness.RunCommand(t, s.hub.Cluster, "plan", "pp", p.Name, "-n", s.namespace); r.Code != 1 || !strings.Contains(strings.Join(strings.Fields(r.Stdout), " "), says) {
		t.Errorf("plan exits with %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	s.changePolicy(t, p, func(p *policyv1alpha1.PropagationSpec) { p.Failover = nil })
	s.says(t, "it-configmap", applied)
	s.changePolicy(t, p, failover)
	s.says(t, "it-configmap", "UnsupportedField", says)
	s.change(t, s.hub, template, func() { template.Data["a"] = "2" })
	s.manifest(t, member1, "it-configmap", hasData("2"))
	s.processed(t, member1, "it-configmap", "DispatchingSuspended")
	s.read(t, s.members[member1], now)
	if now.Data["a"] != "1" {
		t.Errorf("changed while the policy is refused: %v", now.Data)
	}
	s.changePolicy(t, p, func(p *policyv1alpha1.PropagationSpec) { p.Failover = nil })
	s.until(t, s.members[member1], now, func() error {
		if now.Data["a"] != "2" {
			return fmt.Errorf("not changed: %v", now.Data)
		}
		return nil
	})
}

// A resource goes where a cluster has the field that its policy selects by, and follows the field. It does not run beside others,
// for the status of a policy is unknown until the operator has looked at a Cluster that has changed.
func TestPlacementByFieldOfCluster(t *testing.T) {
	s := newStage(t)
	provider := func(member, value string) {
		patch := fmt.Appendf(nil, `{"spec":{"provider":%q}}`, value)
		if err := s.hub.Patch(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: member}}, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	provider(member1, "acme")
	s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap", func(p *policyv1alpha1.PropagationSpec) {
		p.Placement = policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "provider", Operator: corev1.NodeSelectorOpIn, Values: []string{"acme"}}},
		}}}
	}))
	s.says(t, "it-configmap", applied, "applied in cluster "+member1)
	provider(member2, "acme")
	s.says(t, "it-configmap", applied, "applied in all 2 clusters")
	provider(member2, "")
	s.says(t, "it-configmap", applied, "applied in cluster "+member1)
	s.gone(t, s.members[member2], configMap("it"))
}

// A policy of a higher priority that preempts takes a resource from another policy.
func TestPreemption(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap"))
	s.says(t, "it-configmap", applied, "applied in cluster "+member1)
	higher := policy("v1", "ConfigMap", func(p *policyv1alpha1.PropagationSpec) {
		priority := int32(1)
		p.Placement, p.Priority, p.Preemption = to(member2), &priority, policyv1alpha1.PreemptAlways
	})
	higher.Name = "higher"
	s.create(t, s.hub, higher)
	s.says(t, "it-configmap", applied, "applied in cluster "+member2)
	s.tells(t, "higher", "Applied", "all 1 resources are applied")
}
