package adoption_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// One member does not know a kind, and the other does not let the hub at it. Each says so, and what to do; that done, both
// take it.
func TestKindUnknownOrForbiddenInMembers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	group := s.namespace + ".example.com"
	crd := widgetCRD(group)
	for _, where := range []*site{s.hub, s.members[member2]} {
		s.kubectlApply(t, where, crd)
	}
	widget := parse(t, "{apiVersion: "+group+"/v1, kind: Widget, metadata: {name: it}, spec: {colour: blue}}")
	wait.Until(t, func(ctx context.Context) error {
		w := widget.DeepCopy()
		w.SetNamespace(s.namespace)
		return client.IgnoreAlreadyExists(s.hub.Create(ctx, w))
	})
	s.create(t, s.hub, policy(group+"/v1", "Widget", everywhere))
	t.Run("on a hub whose operator may not read it", func(t *testing.T) {
		s.tells(t, "everything", "KindNotFollowed", `the operator may not read Widget on the hub: grant get, list and watch on resource widgets of group "`+group+`" in rbac.extraRules of the chart`)
		s.grant(t, group)
	})
	binding := "it-widget-" + digest(group)
	unknown := fmt.Sprintf("Widget %s/it in cluster member1: the cluster has no kind Widget in %s/v1: install its CRD in the cluster", s.namespace, group)
	s.trouble(t, member1, binding, "everything", failed, unknown)
	s.says(t, binding, failed, "applied in 0 of 2 clusters")
	s.reported(t, binding, member2,
		fmt.Sprintf(`Widget %s/it in cluster member2: widgets.%s "it" is forbidden: User "system:serviceaccount:fairlead-member:hub-`, s.namespace, group),
		fmt.Sprintf(`cannot get resource "widgets" in API group %q in the namespace %q: `, group, s.namespace),
		fmt.Sprintf(`add the rule {apiGroups: [%q], resources: [widgets], verbs: [get, list, watch, create, update, patch, delete]} `, group),
		`to a ClusterRole of the cluster with the label fairlead.dev/aggregate-to-member: "true"`,
	)
	s.kubectlApply(t, s.members[member1], crd)
	for _, m := range s.members {
		s.letHubManage(t, m, group)
	}
	s.says(t, binding, applied, "applied in all 2 clusters")
}

func widgetCRD(group string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, group)
}

// letHubManage lets the hub manage the widgets of a member.
func (s *stage) letHubManage(t testing.TB, m *site, group string) {
	t.Helper()
	rule := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace, Labels: map[string]string{"fairlead.dev/aggregate-to-member": "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}}},
	}
	if err := m.Create(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
}

// reported waits until a binding says this of a member.
func (s *stage) reported(t testing.TB, binding, member string, fragments ...string) {
	t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	b.Name = binding
	s.until(t, s.hub, b, func() error {
		for _, item := range b.Status.AggregatedStatus {
			if item.ClusterName != member {
				continue
			}
			for _, f := range fragments {
				if !strings.Contains(item.AppliedMessage, f) {
					return fmt.Errorf("of %s, the binding says %q, and not %q", member, item.AppliedMessage, f)
				}
			}
			return nil
		}
		return fmt.Errorf("the binding says nothing of %s", member)
	})
}

// grant lets the operator read widgets, as the chart does with rbac.extraRules.
func (s *stage) grant(t *testing.T, group string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.namespace},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "fairlead-system", Name: "fairlead"}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := s.hub.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// What the member's own rules refuse is told in the member's words, and applied when they no longer do.
func TestMemberRefusesByAdmission(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.requireTeam(t, s.members[member1])
	s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap"))
	s.trouble(t, member1, "it-configmap", "everything", failed,
		"ConfigMap "+s.namespace+"/it in cluster member1: ", "ValidatingAdmissionPolicy '"+s.namespace+"'", "say which team it is of")
	t.Run("until the template is as it should be", func(t *testing.T) {
		template := configMap("it")
		s.change(t, s.hub, template, func() { template.Labels = map[string]string{"team": "x"} })
		s.says(t, "it-configmap", applied)
	})
}

// requireTeam has a cluster refuse ConfigMaps of the test's namespace that have no label team.
func (s *stage) requireTeam(t testing.TB, where *site) {
	t.Helper()
	rule := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: "has(object.metadata.labels) && 'team' in object.metadata.labels", Message: "say which team it is of"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: s.namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	for _, o := range []client.Object{rule, binding} {
		if err := where.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, func(ctx context.Context) error {
		probe := configMap("probe")
		probe.Namespace = s.namespace
		if err := where.Create(ctx, probe, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "say which team it is of") {
			return errors.Join(errors.New("nothing is refused yet"), err)
		}
		return nil
	})
}

// A template that the hub can just about keep makes a Work that it cannot.
func TestTemplateTooLarge(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create(t, s.hub, configMap("it", "quotes", strings.Repeat(`"`, 1000<<10)), policy("v1", "ConfigMap"))
	says := []string{"ConfigMap " + s.namespace + "/it", "member1", "too large", "split the resource"}
	s.says(t, "it-configmap", failed, says...)
	s.tells(t, "everything", "AppliedFailed", says...)
	template := configMap("it")
	s.change(t, s.hub, template, func() { template.Data = map[string]string{"quotes": `"`} })
	s.says(t, "it-configmap", applied)
	s.tells(t, "everything", "Applied")
}

// A policy with an invalid label selector reports that.
func TestInvalidSelector(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap", func(p *policyv1alpha1.PropagationSpec) {
		p.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Is", Values: []string{"a"}}}}
	}))
	s.tells(t, "everything", "InvalidSelector", `spec.resourceSelectors[0].labelSelector selects nothing: "Is" is not a valid label selector operator`)
}
