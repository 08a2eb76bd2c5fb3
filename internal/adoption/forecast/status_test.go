package forecast

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/adoption/template"
	"github.com/fairlead/fairlead/internal/passage"
)

func TestStandingOfAResource(t *testing.T) {
	cart := model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}
	bound := func(observed int64, message string, items ...workv1alpha2.AggregatedStatusItem) *model.Binding {
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
		b.SetGeneration(2)
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
		b.Status.ObservedGeneration, b.Status.AggregatedStatus = observed, items
		b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.ConditionFullyApplied, Reason: string(model.ReasonConflict), Message: message}}
		return b
	}
	reasoned := func(reason passage.Code, message string) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: "west", Reason: string(reason), AppliedMessage: message}
	}
	// Without a reason of its own, as it was written before there was one.
	west := func(applied bool, message string) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: "west", Applied: applied, AppliedMessage: message, Health: workv1alpha2.ResourceHealthy}
	}
	nowhere := bound(2, "")
	nowhere.Spec.Clusters = nil
	for name, c := range map[string]struct {
		binding    *model.Binding
		down, held bool
		state      passage.State
		code       passage.Code
		cluster    string
	}{
		"no binding yet":                     {nil, false, false, passage.Running, model.ReasonApplying, ""},
		"a binding that is not reported yet": {bound(1, "", west(true, "")), false, false, passage.Running, model.ReasonApplying, ""},
		"goes nowhere":                       {nowhere, false, false, passage.Failed, model.ReasonNoCluster, ""},
		"not written yet":                    {bound(2, "", reasoned(model.ReasonApplying, "not yet")), false, false, passage.Running, model.ReasonApplying, "west"},
		"not written yet, before":            {bound(2, "", west(false, "cluster west has yet to be written to")), false, false, passage.Running, model.ReasonApplying, "west"},
		"the second of two conflicts":        {bound(2, "applied in 0 of 2 clusters; it is there in east", reasoned(model.ReasonConflict, "it is there in west")), false, false, passage.Failed, model.ReasonConflict, "west"},
		"refused":                            {bound(2, "", reasoned(model.ReasonFailed, "refused")), false, false, passage.Failed, model.ReasonNotApplied, "west"},
		"nothing is said of the cluster":     {bound(2, ""), false, false, passage.Running, model.ReasonApplying, "west"},
		"applied":                            {bound(2, "", west(true, "")), false, false, passage.Done, model.ReasonApplied, "west"},
		"a conflict":                         {bound(2, "applied in 0 of 1 clusters; it is there", west(false, "it is there")), false, false, passage.Failed, model.ReasonConflict, "west"},
		"a failure beside another one":       {bound(2, "applied in 0 of 1 clusters; it is there", west(false, "refused")), false, false, passage.Failed, model.ReasonNotApplied, "west"},
		"a cluster that cannot be reached":   {bound(2, "", west(false, "it waits")), true, false, passage.Running, model.ReasonUnreachable, "west"},
		"suspended":                          {bound(2, "", west(false, "nothing is written")), false, true, passage.Pending, model.ReasonSuspended, "west"},
	} {
		t.Run(name, func(t *testing.T) {
			steps := stepsOf(cart, c.binding, map[string]bool{"west": c.down}, c.held)
			if len(steps) != 1 {
				t.Fatalf("got %+v", steps)
			}
			if s := steps[0]; s.State != c.state || s.Reason.Code != c.code || s.Object.Cluster != c.cluster {
				t.Errorf("got %s in %q, %s", s.State, s.Object.Cluster, s.Reason)
			}
		})
	}
}

func TestRetreat(t *testing.T) {
	p := &policy.Policy{Namespace: "shop", Name: "p", Aborted: true}
	of := func(name string, claimant *policy.Policy) *model.Binding {
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: name + "-deployment"})
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
		model.Claim(b, claimant.Key())
		return b
	}
	others := of("others", &policy.Policy{Namespace: "shop", Name: "q"})
	for name, c := range map[string]struct {
		bindings []*model.Binding
		states   []passage.State
		first    string
	}{
		"begun": {[]*model.Binding{of("pay", p), of("cart", p), others}, []passage.State{passage.Running, passage.Running}, "Deployment shop/cart"},
		"over":  {[]*model.Binding{others}, []passage.State{passage.Done}, "PropagationPolicy shop/p"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &hubState{bindings: map[client.ObjectKey]*model.Binding{}}
			for _, b := range c.bindings {
				v.bindings[client.ObjectKeyFromObject(b.Object)] = b
			}
			steps := v.abortSteps(p)
			var states []passage.State
			for _, s := range steps {
				states = append(states, s.State)
			}
			if !slices.Equal(states, c.states) || steps[0].Object.String() != c.first {
				t.Errorf("got %+v", steps)
			}
		})
	}
}

func TestOutdated(t *testing.T) {
	newPolicy := func(change func(*policy.Policy)) *policy.Policy {
		p := &policy.Policy{Namespace: "shop", Name: "p"}
		change(p)
		return p
	}
	b, err := template.DesiredBinding(model.Template{Namespace: "shop", Name: "cart"}, "", newPolicy(func(*policy.Policy) {}), nil, -1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*policy.Policy)
		want   bool
	}{
		"the same":           {func(*policy.Policy) {}, false},
		"said otherwise":     {func(p *policy.Policy) { p.Spec.ConflictResolution = policyv1alpha1.ConflictAbort }, false},
		"another resolution": {func(p *policy.Policy) { p.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite }, true},
		"another placement": {func(p *policy.Policy) {
			p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west"}}
		}, true},
		"paused": {func(p *policy.Policy) { p.Paused = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policy.IsOutdated(b, newPolicy(c.change)); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
