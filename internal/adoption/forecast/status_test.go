package forecast

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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
		b.Status.ObservedGeneration, b.Status.TemplateVersion, b.Status.AggregatedStatus = observed, "v1", items
		return b
	}
	reasoned := func(reason passage.Code, message string) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: "west", Reason: string(reason), AppliedMessage: message}
	}
	appliedItem := workv1alpha2.AggregatedStatusItem{ClusterName: "west", Applied: true, Health: workv1alpha2.ResourceHealthy}
	nowhere := bound(2)
	nowhere.Spec.Clusters = nil
	lost, back := passage.Because(model.ReasonUnreachable, "waiting"), model.CheckingReason("west")
	for name, c := range map[string]struct {
		version string
		binding *model.Binding
		unknown *passage.Reason
		held    bool
		state   passage.State
		code    passage.Code
		cluster string
	}{
		"no binding yet":                      {"v1", nil, nil, false, passage.Running, model.ReasonApplying, ""},
		"a binding that is not reported yet":  {"v1", bound(1, appliedItem), nil, false, passage.Running, model.ReasonApplying, ""},
		"goes nowhere":                        {"v1", nowhere, nil, false, passage.Failed, model.ReasonNoCluster, ""},
		"not written yet":                     {"v1", bound(2, reasoned(model.ReasonApplying, "not yet")), nil, false, passage.Running, model.ReasonApplying, "west"},
		"of an earlier version, no reason":    {"v1", bound(2, reasoned("", "it is there")), nil, false, passage.Running, model.ReasonApplying, "west"},
		"a conflict":                          {"v1", bound(2, reasoned(model.ReasonConflict, "it is there")), nil, false, passage.Failed, model.ReasonConflict, "west"},
		"refused":                             {"v1", bound(2, reasoned(model.ReasonFailed, "refused")), nil, false, passage.Failed, model.ReasonNotApplied, "west"},
		"another is being deleted":            {"v1", bound(2, reasoned(model.ReasonBeingDeleted, "it waits")), nil, false, passage.Running, model.ReasonBeingDeleted, "west"},
		"nothing is said of the cluster":      {"v1", bound(2), nil, false, passage.Running, model.ReasonApplying, "west"},
		"applied":                             {"v1", bound(2, appliedItem), nil, false, passage.Done, model.ReasonApplied, "west"},
		"applied, and a later version":        {"v2", bound(2, appliedItem), nil, false, passage.Running, model.ReasonApplying, ""},
		"a conflict, and a later version":     {"v2", bound(2, reasoned(model.ReasonConflict, "it is there")), nil, false, passage.Running, model.ReasonApplying, ""},
		"applied, and the version is unknown": {"", bound(2, appliedItem), nil, false, passage.Done, model.ReasonApplied, "west"},
		"refused, and the cluster is lost":    {"v1", bound(2, reasoned(model.ReasonFailed, "refused")), &lost, false, passage.Running, model.ReasonUnreachable, "west"},
		"applied, and the cluster is lost":    {"v1", bound(2, appliedItem), &lost, false, passage.Running, model.ReasonUnreachable, "west"},
		"applied, and the cluster is back":    {"v1", bound(2, appliedItem), &back, false, passage.Running, model.ReasonChecking, "west"},
		"suspended":                           {"v1", bound(2, reasoned(model.ReasonSuspended, "nothing is written")), nil, true, passage.Pending, model.ReasonSuspended, "west"},
	} {
		t.Run(name, func(t *testing.T) {
			unknown := map[string]passage.Reason{}
			if c.unknown != nil {
				unknown["west"] = *c.unknown
			}
			steps := stepsOf(cart, c.version, c.binding, unknown, c.held)
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

// An abort counts what it has released of what there was, also before the status of the policy says that it is aborted.
func TestAbortProgress(t *testing.T) {
	for name, c := range map[string]struct {
		matched, released int32
		left              int
		want              string
	}{
		"begun":                  {4, 0, 4, "0 of 4"},
		"ahead of the report":    {4, 0, 3, "1 of 4"},
		"reported":               {3, 1, 3, "1 of 4"},
		"over":                   {0, 4, 0, "4 of 4"},
		"before the first one":   {0, 0, 2, "0 of 2"},
		"nothing to be released": {0, 0, 0, "0 of 0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &policy.Policy{Aborted: true, Status: &policyv1alpha1.PropagationStatus{Matched: c.matched, Released: c.released}}
			plan := passage.Plan{Steps: make([]passage.Step, c.left)}
			for i := range plan.Steps {
				plan.Steps[i].State = passage.Running
			}
			released, total := AbortProgress(p, plan)
			if got := fmt.Sprintf("%d of %d", released, total); got != c.want {
				t.Errorf("got %s", got)
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
		"all is done, and the policy counts fewer": {metav1.ConditionTrue, model.ReasonAllApplied, []passage.Step{done, done}, false, true},
		"all is done, and the policy does not yet": {metav1.ConditionUnknown, model.ReasonNothingMatched, []passage.Step{done, done}, false, true},
		"all is done, and the policy says nothing": {"", "", []passage.Step{done}, false, true},
		"all is done after a conflict":             {metav1.ConditionFalse, model.ReasonConflict, []passage.Step{done}, false, true},
		"but for a kind that is not readable":      {metav1.ConditionFalse, model.ReasonNotFollowed, []passage.Step{done}, false, false},
		"not all is done":                          {metav1.ConditionUnknown, model.ReasonApplying, []passage.Step{done, running}, false, false},
		"nothing is selected":                      {metav1.ConditionUnknown, model.ReasonNothingMatched, nil, false, false},
		"paused when all was applied":              {metav1.ConditionUnknown, model.ReasonPaused, []passage.Step{done}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &policy.Policy{Namespace: "shop", Name: "p", Paused: c.paused, Status: &policyv1alpha1.PropagationStatus{Matched: 1}}
			if c.ready != "" {
				p.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.ConditionReady, Status: c.ready, Reason: string(c.reason)}}
			}
			if got := reportStep(p, len(c.steps), c.steps); (len(got) > 0) != c.waits || c.waits && got[0].State != passage.Running {
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
	b, err := template.DesiredBinding(model.Template{Namespace: "shop", Name: "cart"}, "", newPolicy(func(*policy.Policy) {}), nil, template.Content{Replicas: -1}, nil)
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
		"preserved":         {func(p *policy.Policy) { p.Spec.PreserveResourcesOnDeletion = ptr.To(true) }, true},
		"not protected":     {func(p *policy.Policy) { p.Spec.DeletionProtection = policyv1alpha1.DeletionProtectionDisabled }, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policy.IsOutdated(b, newPolicy(c.change), nil); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A binding whose template is deleted waits for a policy that is paused, and otherwise for the operator.
func TestStatusOfDeletedTemplates(t *testing.T) {
	for paused, want := range map[bool]passage.State{false: passage.Running, true: passage.Pending} {
		p := &policy.Policy{Namespace: "shop", Name: "p", Paused: paused}
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
		model.Claim(b, p.Key())
		s := &statusPlan{hub: &hubState{bindings: map[client.ObjectKey]*model.Binding{client.ObjectKeyFromObject(b.Object): b}}, subject: p, included: map[string]bool{}}
		s.addReleased()
		if len(s.steps) != 1 || s.steps[0].State != want {
			t.Errorf("paused: %t, got %v", paused, s.steps)
		}
	}
}
