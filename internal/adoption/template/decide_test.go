package template

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

func TestDecide(t *testing.T) {
	selecting := func(name, apiVersion string) *policy.Policy {
		return &policy.Policy{Namespace: "shop", Name: name, Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: apiVersion, Kind: "Deployment"}},
		}}
	}
	p, q := selecting("p", "apps/v1"), selecting("q", "apps/v1")
	aborted := selecting("p", "apps/v1")
	aborted.Aborted = true
	bound := func(claim *policy.Policy, changes ...func(*model.Binding)) *model.Binding {
		b := model.NewBinding("shop", "cart-deployment")
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}
		if claim != nil {
			model.Claim(b, claim.Key())
		}
		for _, change := range changes {
			change(b)
		}
		return b
	}
	deleting := func(b *model.Binding) { b.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time}) }
	required := func(b *model.Binding) { b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "pay"}} }
	beta := func(b *model.Binding) { b.Spec.Resource.APIVersion = "apps/v1beta1" }
	for name, c := range map[string]struct {
		gone     bool
		policies []*policy.Policy
		binding  *model.Binding
		action   passage.Action
		policy   *policy.Policy
	}{
		"gone, and never bound":                    {true, nil, nil, model.ActionNone, nil},
		"gone":                                     {true, nil, bound(p), model.ActionDelete, nil},
		"gone, and its binding is being deleted":   {true, nil, bound(p, deleting), model.ActionNone, nil},
		"selected":                                 {false, []*policy.Policy{p}, nil, model.ActionApply, p},
		"not selected":                             {false, nil, nil, model.ActionNone, nil},
		"claimed, and stays so":                    {false, []*policy.Policy{p, q}, bound(q), model.ActionApply, q},
		"its policy is gone":                       {false, nil, bound(p), model.ActionOrphan, nil},
		"its policy is gone, another one selects":  {false, []*policy.Policy{q}, bound(p), model.ActionApply, q},
		"its policy is aborted":                    {false, []*policy.Policy{aborted}, bound(p), model.ActionRestore, nil},
		"its policy is aborted, another selects":   {false, []*policy.Policy{aborted, q}, bound(p), model.ActionRestore, nil},
		"aborted, and its binding is deleted":      {false, []*policy.Policy{aborted}, bound(p, deleting), model.ActionNone, nil},
		"an aborted policy takes nothing":          {false, []*policy.Policy{aborted}, nil, model.ActionNone, nil},
		"its binding is being deleted":             {false, []*policy.Policy{p}, bound(p, deleting), model.ActionWait, p},
		"required, and not selected":               {false, nil, bound(nil, required), model.ActionKeep, nil},
		"required, and selected":                   {false, []*policy.Policy{p}, bound(nil, required), model.ActionApply, p},
		"neither claimed nor required":             {false, nil, bound(nil), model.ActionNone, nil},
		"taken in another version":                 {false, []*policy.Policy{selecting("b", "apps/v1beta1"), p}, bound(selecting("b", ""), beta), model.ActionNone, nil},
		"no longer selected in the other version":  {false, []*policy.Policy{p}, bound(selecting("b", ""), beta), model.ActionApply, p},
		"bound in another version, never selected": {false, nil, bound(p, beta), model.ActionNone, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(Observed{
				Template: model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"},
				Exists:   !c.gone, Policies: c.policies, Binding: c.binding,
			})
			if d.Action != c.action || d.Policy != c.policy {
				t.Errorf("got %s (%s) by %v", d.Action, d.Reason, d.Policy)
			}
			if d.Action != model.ActionNone && d.Reason.Message == "" {
				t.Errorf("%s has no reason", d.Action)
			}
		})
	}
}

func TestWithoutDependents(t *testing.T) {
	by := model.NewBinding("shop", "pay")
	for name, c := range map[string]struct {
		requiredBy []string
		claimed    bool
		taken      bool
	}{
		"the last that required it":         {[]string{"pay"}, false, false},
		"one of two":                        {[]string{"cart", "pay"}, false, true},
		"the last, and a policy takes it":   {[]string{"pay"}, true, true},
		"required by others, never by this": {[]string{"cart"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			dependency := model.NewBinding("shop", "settings")
			for _, r := range c.requiredBy {
				dependency.Spec.RequiredBy = append(dependency.Spec.RequiredBy, workv1alpha2.BindingSnapshot{Namespace: "shop", Name: r})
			}
			if c.claimed {
				model.Claim(dependency, model.PolicyKey{Namespace: "shop", Name: "p"})
			}
			got := WithoutDependents(dependency, by)
			if model.IsTaken(got) != c.taken || model.IsRequiredBy(got, map[string]bool{"shop/pay": true}) || len(dependency.Spec.RequiredBy) != len(c.requiredBy) {
				t.Errorf("required by %v, before by %v", got.Spec.RequiredBy, dependency.Spec.RequiredBy)
			}
		})
	}
}
