package adoption

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
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
	cart := Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart", Labels: map[string]string{"app": "cart"}}
	app, other := map[string]string{"app": "cart"}, map[string]string{"app": "till"}
	deleted := policyOf("a", called("cart"))
	deleted.Deleted = true
	invalid := deployments()
	invalid.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
	for name, c := range map[string]struct {
		policies []*Policy
		claimed  Key
		want     string
	}{
		"none":              {nil, Key{}, ""},
		"one of its kind":   {[]*Policy{policyOf("a", deployments())}, Key{}, "a"},
		"of another kind":   {[]*Policy{policyOf("a", policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Service"})}, Key{}, ""},
		"of another group":  {[]*Policy{policyOf("a", policyv1alpha1.ResourceSelector{APIVersion: "extensions/v1beta1", Kind: "Deployment"})}, Key{}, ""},
		"of another name":   {[]*Policy{policyOf("a", called("till"))}, Key{}, ""},
		"of other labels":   {[]*Policy{policyOf("a", labelled(other))}, Key{}, ""},
		"of bad labels":     {[]*Policy{policyOf("a", invalid)}, Key{}, ""},
		"of no labels":      {[]*Policy{policyOf("a", labelled(nil))}, Key{}, "a"},
		"being deleted":     {[]*Policy{deleted}, Key{}, ""},
		"its own namespace": {[]*Policy{policyOf("a", in("shop", deployments()))}, Key{}, "a"},
		"of another namespace, which it does not reach": {[]*Policy{policyOf("a", in("bank", deployments()))}, Key{}, ""},
		"the cluster's, for one namespace":              {[]*Policy{policyOf("a", in("shop", deployments())).everywhere()}, Key{}, "a"},
		"the cluster's, for another namespace":          {[]*Policy{policyOf("a", in("bank", deployments())).everywhere()}, Key{}, ""},
		"any of its selectors":                          {[]*Policy{policyOf("a", called("till"), labelled(app))}, Key{}, "a"},

		"a namespace before the cluster, whatever else": {
			[]*Policy{policyOf("a", called("cart")).everywhere().prior(9), policyOf("b", deployments()).prior(-9)}, Key{}, "b",
		},
		"priority before closeness":  {[]*Policy{policyOf("a", called("cart")), policyOf("b", deployments()).prior(1)}, Key{}, "b"},
		"no priority is 0":           {[]*Policy{policyOf("a", deployments()).prior(-1), policyOf("b", deployments())}, Key{}, "b"},
		"a name before labels":       {[]*Policy{policyOf("a", labelled(app)), policyOf("b", called("cart"))}, Key{}, "b"},
		"labels before the kind":     {[]*Policy{policyOf("a", deployments()), policyOf("b", labelled(app))}, Key{}, "b"},
		"the closest of a policy":    {[]*Policy{policyOf("a", labelled(app)), policyOf("b", deployments(), called("cart"))}, Key{}, "b"},
		"closeness before alphabet":  {[]*Policy{policyOf("a", deployments()), policyOf("b", called("cart"))}, Key{}, "b"},
		"the first of the alphabet":  {[]*Policy{policyOf("b", deployments()), policyOf("a", deployments())}, Key{}, "a"},
		"the claim is kept":          {[]*Policy{policyOf("a", called("cart")).prior(9), policyOf("b", deployments())}, Key{"shop", "b"}, "b"},
		"the cluster's claim, too":   {[]*Policy{policyOf("a", called("cart")), policyOf("b", deployments()).everywhere()}, Key{"", "b"}, "b"},
		"not of who selects no more": {[]*Policy{policyOf("a", deployments()), policyOf("b", called("till"))}, Key{"shop", "b"}, "a"},
		"not of who is gone":         {[]*Policy{policyOf("a", deployments())}, Key{"shop", "b"}, "a"},
		"not of who is being deleted": {
			[]*Policy{deleted, policyOf("b", deployments())}, Key{"shop", "a"}, "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				got := ""
				if p := choose(cart, c.policies, c.claimed); p != nil {
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
