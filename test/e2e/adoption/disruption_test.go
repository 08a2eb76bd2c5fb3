package adoption_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// While a member cannot be reached, its Works wait and the others go on. When it is back, it catches up.
func TestStoryMemberDownAndBack(t *testing.T) {
	s := newStage(t)
	s.create(t, s.hub, configMap("it", "a", "1"), policy("v1", "ConfigMap", everywhere))
	s.says(t, "it-configmap", applied)
	heal := s.members[member2].cut(t)
	wait.Until(t, s.ready(member2, metav1.ConditionFalse, s.members[member2].Config().Host+" does not respond as expected"))
	s.operator.Measures(t, `fairlead_adoption_cluster_ready{cluster="`+member2+`"}`, func(ready float64) bool { return ready == 0 })
	template := configMap("it")
	s.change(t, s.hub, template, func() { template.Data["a"] = "2" })
	s.create(t, s.hub, configMap("later"))
	s.until(t, s.members[member1], configMap("later"), func() error { return nil })
	now := configMap("it")
	s.until(t, s.members[member1], now, has(now, "a", "2"))
	s.says(t, "later-configmap", failed, "applied in 1 of 2 clusters; waiting until cluster member2 can be reached: "+s.members[member2].Config().Host+" does not respond as expected")
	wait.Until(t, s.ready(member1, metav1.ConditionTrue, "the API server responds"))
	heal()
	s.becomes(t, member2, metav1.ConditionTrue, "the API server responds")
	for _, name := range []string{"it", "later"} {
		s.says(t, name+"-configmap", applied, "applied in all 2 clusters")
	}
	s.until(t, s.members[member2], now, has(now, "a", "2"))
}

// A policy that names a cluster says so until the cluster joins. The policy selects nothing, so no binding reports to it.
func TestStoryNamedClusterJoins(t *testing.T) {
	s := newStage(t)
	const joining = "joining"
	s.create(t, s.hub, policy("v1", "ConfigMap", func(p *policyv1alpha1.PropagationSpec) {
		p.ResourceSelectors[0].Name = "none"
		p.Placement = to(member1, joining)
	}))
	const missing = "clusters that have not joined the hub, or are leaving it: " + joining
	names := func(want bool) {
		t.Helper()
		now := policy("", "")
		s.until(t, s.hub, now, func() error {
			ready := meta.FindStatusCondition(now.Status.Conditions, policyv1alpha1.ConditionReady)
			if ready == nil || strings.Contains(ready.Message, missing) != want {
				return fmt.Errorf("the policy says %+v, want Cluster %s named: %t", ready, joining, want)
			}
			return nil
		})
	}
	names(true)
	s.addUnreachable(t, joining, "")
	names(false)
}

// A new operator over what is managed writes nothing but what has changed while there was none.
func TestStoryOperatorKilled(t *testing.T) {
	s := newStage(t)
	for _, m := range s.members {
		s.create(t, m, deployment("it"), parse(t, service))
	}
	s.create(t, s.hub, deployment("it"), parse(t, service), configMap("it", "a", "1"), configMap("last", "a", "1"))
	for _, kind := range []string{"apps/v1 Deployment", "v1 Service", "v1 ConfigMap"} {
		version, name, _ := strings.Cut(kind, " ")
		p := policy(version, name, everywhere, overwrite)
		p.Name = strings.ToLower(name)
		s.create(t, s.hub, p)
	}
	for _, binding := range []string{"it-deployment", "it-service", "it-configmap", "last-configmap"} {
		s.says(t, binding, applied, "applied in all 2 clusters")
	}
	for _, m := range s.members {
		s.running(t, m, "it")
	}
	s.operator.Kill()
	template := configMap("last")
	s.change(t, s.hub, template, func() { template.Data["a"] = "2" })
	writes := map[string]*writes{}
	for name, m := range s.members {
		writes[name] = s.recordWrites(t, m)
	}
	if err := s.operate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.operator.KeepLogOnFailure(t)
	for _, m := range s.members {
		now := configMap("last")
		s.until(t, m, now, has(now, "a", "2"))
	}
	s.pass(t, "another")
	want := map[string]int{"UPDATE configmaps last": 1, "CREATE configmaps another": 1}
	for name, w := range writes {
		if diff := cmp.Diff(want, w.byHubs()); diff != "" {
			t.Errorf("writes to %s (-want +got)\n%s", name, diff)
		}
	}
}

const service = "{apiVersion: v1, kind: Service, metadata: {name: it}, spec: {ports: [{port: 80}]}}"

func TestHubRestarted(t *testing.T) {
	s := newStage(t)
	s.create(t, s.hub, configMap("it", "a", "1"), configMap("same", "a", "1"), policy("v1", "ConfigMap", everywhere))
	s.says(t, "it-configmap", applied)
	s.says(t, "same-configmap", applied)
	before := s.versions(t, configMap("same"))
	s.hub.cut(t)()
	template := configMap("it")
	s.change(t, s.hub, template, func() { template.Data["a"] = "2" })
	for _, m := range s.members {
		now := configMap("it")
		s.until(t, m, now, has(now, "a", "2"))
	}
	s.pass(t, "another")
	if err := s.operator.Alive(); err != nil {
		t.Error(err)
	}
	if after := s.versions(t, configMap("same")); after != before {
		t.Errorf("it was written to: %v became %v", before, after)
	}
	for member := range s.members {
		s.becomes(t, member, metav1.ConditionTrue, "")
	}
}
