package policy

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// named policies, in the namespace shop unless told otherwise.
func policyOf(name string, selectors ...policyv1alpha1.ResourceSelector) *Policy {
	return &Policy{Namespace: "shop", Name: name, Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: selectors}}
}

func (p *Policy) everywhere() *Policy {
	p.Namespace = ""
	return p
}

func (p *Policy) prior(priority int32) *Policy {
	p.Spec.Priority = ptr.To(priority)
	return p
}

func (p *Policy) preempting() *Policy {
	p.Spec.Preemption = policyv1alpha1.PreemptAlways
	return p
}

func deployments() policyv1alpha1.ResourceSelector {
	return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
}

func called(name string) policyv1alpha1.ResourceSelector {
	s := deployments()
	s.Name = name
	return s
}

func labelled(labels map[string]string) policyv1alpha1.ResourceSelector {
	s := deployments()
	s.LabelSelector = &metav1.LabelSelector{MatchLabels: labels}
	return s
}

func in(namespace string, s policyv1alpha1.ResourceSelector) policyv1alpha1.ResourceSelector {
	s.Namespace = namespace
	return s
}

func TestChoose(t *testing.T) {
	cart := model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart", Labels: map[string]string{"app": "cart"}}
	app, other := map[string]string{"app": "cart"}, map[string]string{"app": "till"}
	deleted := policyOf("a", called("cart"))
	deleted.Deleted = true
	refused := policyOf("b", deployments()).prior(1).preempting()
	refused.Spec.Association = true
	claim := func(namespace, name string) model.PolicyKey { return model.PolicyKey{Namespace: namespace, Name: name} }
	invalid := deployments()
	invalid.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
	for name, c := range map[string]struct {
		policies []*Policy
		claimed  model.PolicyKey
		want     string
	}{
		"none":              {nil, model.PolicyKey{}, ""},
		"one of its kind":   {[]*Policy{policyOf("a", deployments())}, model.PolicyKey{}, "a"},
		"of another kind":   {[]*Policy{policyOf("a", policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Service"})}, model.PolicyKey{}, ""},
		"of another group":  {[]*Policy{policyOf("a", policyv1alpha1.ResourceSelector{APIVersion: "extensions/v1beta1", Kind: "Deployment"})}, model.PolicyKey{}, ""},
		"of another name":   {[]*Policy{policyOf("a", called("till"))}, model.PolicyKey{}, ""},
		"of other labels":   {[]*Policy{policyOf("a", labelled(other))}, model.PolicyKey{}, ""},
		"of bad labels":     {[]*Policy{policyOf("a", invalid)}, model.PolicyKey{}, ""},
		"of no labels":      {[]*Policy{policyOf("a", labelled(nil))}, model.PolicyKey{}, "a"},
		"being deleted":     {[]*Policy{deleted}, model.PolicyKey{}, ""},
		"its own namespace": {[]*Policy{policyOf("a", in("shop", deployments()))}, model.PolicyKey{}, "a"},
		"of another namespace, which it does not reach": {[]*Policy{policyOf("a", in("bank", deployments()))}, model.PolicyKey{}, ""},
		"the cluster's, for one namespace":              {[]*Policy{policyOf("a", in("shop", deployments())).everywhere()}, model.PolicyKey{}, "a"},
		"the cluster's, for another namespace":          {[]*Policy{policyOf("a", in("bank", deployments())).everywhere()}, model.PolicyKey{}, ""},
		"any of its selectors":                          {[]*Policy{policyOf("a", called("till"), labelled(app))}, model.PolicyKey{}, "a"},

		"a namespace before the cluster, whatever else": {
			[]*Policy{policyOf("a", called("cart")).everywhere().prior(9), policyOf("b", deployments()).prior(-9)}, model.PolicyKey{}, "b",
		},
		"priority before closeness":  {[]*Policy{policyOf("a", called("cart")), policyOf("b", deployments()).prior(1)}, model.PolicyKey{}, "b"},
		"no priority is 0":           {[]*Policy{policyOf("a", deployments()).prior(-1), policyOf("b", deployments())}, model.PolicyKey{}, "b"},
		"a name before labels":       {[]*Policy{policyOf("a", labelled(app)), policyOf("b", called("cart"))}, model.PolicyKey{}, "b"},
		"labels before the kind":     {[]*Policy{policyOf("a", deployments()), policyOf("b", labelled(app))}, model.PolicyKey{}, "b"},
		"the closest of a policy":    {[]*Policy{policyOf("a", labelled(app)), policyOf("b", deployments(), called("cart"))}, model.PolicyKey{}, "b"},
		"closeness before alphabet":  {[]*Policy{policyOf("a", deployments()), policyOf("b", called("cart"))}, model.PolicyKey{}, "b"},
		"the first of the alphabet":  {[]*Policy{policyOf("b", deployments()), policyOf("a", deployments())}, model.PolicyKey{}, "a"},
		"the claim is kept":          {[]*Policy{policyOf("a", called("cart")).prior(9), policyOf("b", deployments())}, model.PolicyKey{Namespace: "shop", Name: "b"}, "b"},
		"the cluster's claim, too":   {[]*Policy{policyOf("a", called("cart")), policyOf("b", deployments()).everywhere()}, model.PolicyKey{Namespace: "", Name: "b"}, "b"},
		"not of who selects no more": {[]*Policy{policyOf("a", deployments()), policyOf("b", called("till"))}, model.PolicyKey{Namespace: "shop", Name: "b"}, "a"},
		"not of who is gone":         {[]*Policy{policyOf("a", deployments())}, model.PolicyKey{Namespace: "shop", Name: "b"}, "a"},

		"preempted by a higher priority":           {[]*Policy{policyOf("a", deployments()), policyOf("b", deployments()).prior(1).preempting()}, claim("shop", "a"), "b"},
		"not preempted by the same priority":       {[]*Policy{policyOf("a", deployments()), policyOf("b", called("cart")).preempting()}, claim("shop", "a"), "a"},
		"not preempted by one that never does":     {[]*Policy{policyOf("a", deployments()), policyOf("b", deployments()).prior(1)}, claim("shop", "a"), "a"},
		"not preempted by what selects others":     {[]*Policy{policyOf("a", deployments()), policyOf("b", called("till")).prior(1).preempting()}, claim("shop", "a"), "a"},
		"the cluster's preempted, by any priority": {[]*Policy{policyOf("a", deployments()).everywhere().prior(9), policyOf("b", deployments()).preempting()}, claim("", "a"), "b"},
		"not preempted by the cluster's":           {[]*Policy{policyOf("a", deployments()), policyOf("b", deployments()).everywhere().prior(9).preempting()}, claim("shop", "a"), "a"},
		"the cluster's by the cluster's":           {[]*Policy{policyOf("a", deployments()).everywhere(), policyOf("b", deployments()).everywhere().prior(9).preempting()}, claim("", "a"), "b"},
		"the highest of several that preempt": {
			[]*Policy{policyOf("a", deployments()), policyOf("b", deployments()).prior(1).preempting(), policyOf("c", deployments()).prior(2).preempting()}, claim("shop", "a"), "c",
		},
		"not preempted by a refused policy": {[]*Policy{policyOf("a", deployments()), refused}, claim("shop", "a"), "a"},
		"not of who is being deleted": {
			[]*Policy{deleted, policyOf("b", deployments())}, model.PolicyKey{Namespace: "shop", Name: "a"}, "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				got := ""
				if p := Select(cart, c.policies, c.claimed); p != nil {
					got = p.Name
				}
				if got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				// However they are found.
				for i, j := 0, len(c.policies)-1; i < j; i, j = i+1, j-1 {
					c.policies[i], c.policies[j] = c.policies[j], c.policies[i]
				}
			}
		})
	}
}

// Whatever its selectors say, a PropagationPolicy takes nothing but resources of its own namespace.
func TestPolicyStaysInItsNamespace(t *testing.T) {
	selector := func(namespace, name string) policyv1alpha1.ResourceSelector {
		return policyv1alpha1.ResourceSelector{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Namespace: namespace, Name: name}
	}
	for name, c := range map[string]struct {
		selector policyv1alpha1.ResourceSelector
		resource model.Template
	}{
		"a cluster-scoped resource":               {selector("", ""), model.Template{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "shop"}},
		"a cluster-scoped resource by name":       {selector("", "shop"), model.Template{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "shop"}},
		"a cluster-scoped resource and namespace": {selector("shop", "shop"), model.Template{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "shop"}},
		"its own namespace":                       {policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Namespace", Name: "shop"}, model.Template{APIVersion: "v1", Kind: "Namespace", Name: "shop"}},
		"another namespace":                       {in("bank", deployments()), model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "bank", Name: "cart"}},
		"another namespace, by any":               {deployments(), model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "bank", Name: "cart"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := policyOf("all", c.selector).preempting()
			for _, claimed := range []model.PolicyKey{{}, p.Key()} {
				if Select(c.resource, []*Policy{p}, claimed) != nil {
					t.Errorf("taken, claimed by %q before", claimed)
				}
			}
		})
	}
}
