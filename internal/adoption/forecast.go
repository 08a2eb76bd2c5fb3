package adoption

import (
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// What a forecast tells of objects, besides what is done about them.
const (
	// ActionConflict is for one that is left alone because it is somebody else's.
	ActionConflict passage.Action = "conflict"
	// ActionRemove is for one that goes, because its resource no longer goes to the cluster.
	ActionRemove passage.Action = "remove"
	// ActionRelease is for one that stays without the marks, for the same reason.
	ActionRelease passage.Action = "release"
	// ActionUnknown is for one that nobody can look at.
	ActionUnknown passage.Action = "unknown"
)

// Outlook is what becomes of one object in one cluster.
type Outlook struct {
	Object passage.Object `json:"object"`
	Action passage.Action `json:"action"`
	Reason passage.Reason `json:"reason,omitzero"`
	Effect
	// Failed tells that it would not come to it.
	Failed bool `json:"failed,omitempty"`
}

// Forecast is what becomes of all that a policy takes, if nothing else changes.
type Forecast struct {
	Subject passage.Object
	Hold    *passage.Reason
	// Outlooks are ordered by cluster, kind and name.
	Outlooks []Outlook
	// Elsewhere counts the resources that the policy selects, by the other policy that takes them.
	Elsewhere map[Key]int
	// Obstacles are what has to be mended first.
	Obstacles []passage.Step
	// Notes are what else there is to know.
	Notes []string
}

// Plan is the forecast as steps.
func (f Forecast) Plan() passage.Plan {
	plan := passage.Plan{Passage: Name, Subject: f.Subject, Hold: f.Hold, Steps: []passage.Step{}}
	for _, o := range f.Outlooks {
		plan.Steps = append(plan.Steps, passage.Step{Object: o.Object, Action: o.Action, Reason: o.Reason, Disruptive: o.Restarts, State: o.state()})
	}
	plan.Steps = append(plan.Steps, f.Obstacles...)
	return plan
}

func (o Outlook) state() passage.State {
	switch {
	case o.Failed:
		return passage.Failed
	case o.Action == ActionNone:
		return passage.Done
	case o.Action == ActionAwait:
		return passage.Running
	}
	return passage.Pending
}

// Totals add a forecast up.
type Totals struct {
	// Actions are how many objects come to which end.
	Actions map[passage.Action]int `json:"actions"`
	// Failed are those that it would not come to.
	Failed int `json:"failed"`
	// Workloads restart, and Pods with them.
	Workloads int   `json:"workloadsThatRestart"`
	Pods      int64 `json:"podsThatRestart"`
	// PodsThatGo are those of workloads that are removed.
	PodsThatGo int64 `json:"podsThatGo"`
}

// Totals of all clusters.
func (f Forecast) Totals() Totals {
	t := Totals{Actions: map[passage.Action]int{}}
	for _, o := range f.Outlooks {
		t.Actions[o.Action]++
		if o.Failed {
			t.Failed++
		}
		if o.Goes {
			t.PodsThatGo += o.Pods
		}
		if o.Restarts {
			t.Workloads++
			t.Pods += o.Pods
		}
	}
	return t
}

// object that the policy is.
func (p *Policy) object() passage.Object {
	kind := policyv1alpha1.PropagationPolicyKind
	if p.Namespace == "" {
		kind = policyv1alpha1.ClusterPropagationPolicyKind
	}
	return passage.Object{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: kind, Namespace: p.Namespace, Name: p.Name}
}

// hold is why nothing is written for the policy for now, nil if it is.
func (p *Policy) hold() *passage.Reason {
	var why passage.Reason
	switch s := p.Spec.Suspension; {
	case p.Aborted:
		why = passage.Because(ReasonAborted, "it was aborted, and takes nothing: remove annotation %s to start again", AnnotationAborted)
	case p.Paused:
		why = passage.Because(ReasonPaused, "it is paused: nothing is written to clusters until it is resumed")
	case s != nil && ptr.Deref(s.Dispatching, false):
		why = passage.Because(ReasonSuspended, "nothing is written to clusters while its spec.suspension.dispatching is true")
	default:
		return nil
	}
	return &why
}
