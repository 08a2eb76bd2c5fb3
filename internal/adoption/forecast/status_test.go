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

func TestStepsOfResource(t *testing.T) {
	cart := model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}
	bound := func(observed int64, items ...workv1alpha2.AggregatedStatusItem) *model.Binding {
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
		b.SetGeneration(2)
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
		b.Status.ObservedGeneration, b.Status.AggregatedStatus = observed, items
		return b
	}
	reasoned := func(reason passage.Code, message string) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: "west", Reason: string(reason), AppliedMessage: message}
	}
	appliedItem := workv1alpha2.AggregatedStatusItem{ClusterName: "west", Applied: true, Health: workv1alpha2.ResourceHealthy}
	nowhere := bound(2)
	nowhere.Spec.Clusters = nil
	for name, c := range map[string]struct {
		binding    *model.Binding
		down, held bool
		state      passage.State
		code       passage.Code
		cluster    string
	}{
		"no binding yet":                     {nil, false, false, passage.Running, model.ReasonApplying, ""},
		"a binding that is not reported yet": {bound(1, appliedItem), false, false, passage.Running, model.ReasonApplying, ""},
		"goes nowhere":                       {nowhere, false, false, passage.Failed, model.ReasonNoCluster, ""},
		"not written yet":                    {bound(2, reasoned(model.ReasonApplying, "not yet")), false, false, passage.Running, model.ReasonApplying, "west"},
		"of an earlier version, no reason":   {bound(2, reasoned("", "it is there")), false, false, passage.Running, model.ReasonApplying, "west"},
		"a conflict":                         {bound(2, reasoned(model.ReasonConflict, "it is there")), false, false, passage.Failed, model.ReasonConflict, "west"},
		"refused":                            {bound(2, reasoned(model.ReasonFailed, "refused")), false, false, passage.Failed, model.ReasonNotApplied, "west"},
		"nothing is said of the cluster":     {bound(2), false, false, passage.Running, model.ReasonApplying, "west"},
		"applied":                            {bound(2, appliedItem), false, false, passage.Done, model.ReasonApplied, "west"},
		"a cluster that cannot be reached":   {bound(2, reasoned(model.ReasonFailed, "it waits")), true, false, passage.Running, model.ReasonUnreachable, "west"},
		"suspended":                          {bound(2, reasoned(model.ReasonSuspended, "nothing is written")), false, true, passage.Pending, model.ReasonSuspended, "west"},
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

func TestAbortSteps(t *testing.T) {
	p := &policy.Policy{Namespace: "shop", Name: "p", Aborted: true, Status: &policyv1alpha1.PropagationStatus{
		Conditions: []metav1.Condition{{Type: policyv1alpha1.ConditionReady, Status: metav1.ConditionFalse}},
	}}
	of := func(name string, claimant *policy.Policy) *model.Binding {
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: name + "-deployment"})
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
		model.Claim(b, claimant.Key())
		return b
	}
	others := of("others", &policy.Policy{Namespace: "shop", Name: "q"})
	for name, c := range map[string]struct {
		bindings []*model.Binding
		reported passage.Code
		states   []passage.State
		first    string
	}{
		"begun": {[]*model.Binding{of("pay", p), of("cart", p), others}, model.ReasonAborting, []passage.State{passage.Running, passage.Running}, "Deployment shop/cart"},
		"over":  {[]*model.Binding{others}, model.ReasonAborted, []passage.State{passage.Done}, "PropagationPolicy shop/p"},
		"over, and the policy does not say so yet": {[]*model.Binding{others}, model.ReasonAborting, []passage.State{passage.Running}, "PropagationPolicy shop/p"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &hubState{bindings: map[client.ObjectKey]*model.Binding{}}
			for _, b := range c.bindings {
				v.bindings[client.ObjectKeyFromObject(b.Object)] = b
			}
			p.Status.Conditions[0].Reason = string(c.reported)
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

// A policy is not called completed before its own status says so.
func TestReportStep(t *testing.T) {
	done, running := passage.Step{State: passage.Done}, passage.Step{State: passage.Running}
	for name, c := range map[string]struct {
		ready  metav1.ConditionStatus
		reason passage.Code
		steps  []passage.Step
		paused bool
		waits  bool
	}{
		"all is done, and the policy says so":      {metav1.ConditionTrue, model.ReasonAllApplied, []passage.Step{done}, false, false},
		"all is done, and the policy does not yet": {metav1.ConditionUnknown, model.ReasonNothingMatched, []passage.Step{done, done}, false, true},
		"all is done, and the policy says nothing": {"", "", []passage.Step{done}, false, true},
		"all is done after a conflict":             {metav1.ConditionFalse, model.ReasonConflict, []passage.Step{done}, false, true},
		"but for a kind that is not readable":      {metav1.ConditionFalse, model.ReasonNotFollowed, []passage.Step{done}, false, false},
		"not all is done":                          {metav1.ConditionUnknown, model.ReasonApplying, []passage.Step{done, running}, false, false},
		"nothing is selected":                      {metav1.ConditionUnknown, model.ReasonNothingMatched, nil, false, false},
		"paused when all was applied":              {metav1.ConditionUnknown, model.ReasonPaused, []passage.Step{done}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &policy.Policy{Namespace: "shop", Name: "p", Paused: c.paused, Status: &policyv1alpha1.PropagationStatus{}}
			if c.ready != "" {
				p.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.ConditionReady, Status: c.ready, Reason: string(c.reason)}}
			}
			if got := reportStep(p, c.steps); (len(got) > 0) != c.waits || c.waits && got[0].State != passage.Running {
				t.Errorf("got %v", got)
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
		"paused":            {func(p *policy.Policy) { p.Paused = true }, true},
		"with dependencies": {func(p *policy.Policy) { p.Spec.PropagateDeps = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policy.IsOutdated(b, newPolicy(c.change), nil); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
