// Package forecast predicts what a policy does, by the decisions of the operator, and reports how far the operator is with it.
package forecast

import (
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// Outcome is the predicted action on one object in one cluster.
type Outcome struct {
	Object passage.Object `json:"object"`
	Action passage.Action `json:"action"`
	Reason passage.Reason `json:"reason,omitzero"`
	Effect
	// Cascade counts, by kind, what the deletion of the object deletes, or would delete, with it.
	Cascade map[string]int64 `json:"cascade,omitempty"`
	// Failed holds when the action would not succeed.
	Failed bool `json:"failed,omitempty"`
}

// Forecast is what becomes of all that a policy takes, if nothing else changes.
type Forecast struct {
	Subject passage.Object
	Hold    *passage.Reason
	// Outcomes are ordered by cluster, kind and name.
	Outcomes []Outcome
	// Elsewhere counts the resources that the policy selects, by the other policy that takes them.
	Elsewhere map[model.PolicyKey]int
	// Deferred are the resources for which the policy takes effect only when their templates change.
	Deferred []Deferral
	// Obstacles are problems that have to be solved first.
	Obstacles []passage.Step
	// Notes are further remarks.
	Notes []string
}

// Deferral is a resource that does not follow its policy yet.
type Deferral struct {
	Object passage.Object `json:"object"`
	Reason passage.Reason `json:"reason"`
}

// Plan is the forecast as steps.
func (f Forecast) Plan() passage.Plan {
	plan := passage.Plan{Passage: model.Passage, Subject: f.Subject, Hold: f.Hold, Steps: []passage.Step{}}
	for _, o := range f.Outcomes {
		plan.Steps = append(plan.Steps, passage.Step{Object: o.Object, Action: o.Action, Reason: o.Reason, Disruptive: o.Restarts, State: o.state()})
	}
	plan.Steps = append(plan.Steps, f.Obstacles...)
	return plan
}

func (o Outcome) state() passage.State {
	switch {
	case o.Failed:
		return passage.Failed
	case o.Action == model.ActionNone:
		return passage.Done
	case o.Action == model.ActionWait:
		return passage.Running
	}
	return passage.Pending
}

// Totals add a forecast up.
type Totals struct {
	// Actions are the numbers of objects by action.
	Actions map[passage.Action]int `json:"actions"`
	// Failed are those whose action would not succeed.
	Failed int `json:"failed"`
	// Workloads restart, and Pods with them.
	Workloads int   `json:"workloadsThatRestart"`
	Pods      int64 `json:"podsThatRestart"`
	// PodsDeleted are the pods of workloads that are deleted.
	PodsDeleted int64 `json:"podsThatGo"`
}

// Totals of all clusters.
func (f Forecast) Totals() Totals {
	t := Totals{Actions: map[passage.Action]int{}}
	for _, o := range f.Outcomes {
		t.Actions[o.Action]++
		if o.Failed {
			t.Failed++
		}
		if o.Deleted {
			t.PodsDeleted += o.Pods
		}
		if o.Restarts {
			t.Workloads++
			t.Pods += o.Pods
		}
	}
	return t
}
