package passage

import (
	"slices"
	"time"
)

// Object names one object in one cluster; it is comparable, so it serves as a map key.
type Object struct {
	// Cluster is the member cluster that holds the object, empty for the
	// cluster that Fairlead itself looks at.
	Cluster    string `json:"cluster,omitempty"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// String names the object as a person would: "Deployment shop/cart in eu-west".
func (o Object) String() string {
	text := o.Kind + " "
	if o.Namespace != "" {
		text += o.Namespace + "/"
	}
	text += o.Name
	if o.Cluster != "" {
		text += " in " + o.Cluster
	}
	return text
}

// Action is what a step does to its object; each passage names its own.
type Action string

// State is how far a step has come, as recorded in the cluster.
type State string

const (
	// Pending is a step that has not started; an empty State means the same.
	Pending State = "Pending"
	// Running is a step that has started and has not settled.
	Running State = "Running"
	// Done is a step that reached what it was for, or had nothing to do.
	Done State = "Done"
	// Failed is a step that gave up; it starts again only when a person asks.
	Failed State = "Failed"
	// Skipped is a step that is listed and left alone. What has started is never
	// Skipped, or it would no longer be counted among what is running.
	Skipped State = "Skipped"
	// Later is a step that follows by itself when its reason is gone, such as what still uses the object, and that
	// the plan does not wait for. Like a Skipped one, it has not started.
	Later State = "Later"
)

func (s State) pending() bool { return s == "" || s == Pending }

// Settled reports whether the plan expects nothing more of the step.
func (s State) Settled() bool { return s == Done || s == Failed || s.leftOut() }

// leftOut holds for steps that are listed, and are not part of what the plan brings about.
func (s State) leftOut() bool { return s == Skipped || s == Later }

// running holds for states we do not know as well: waiting for such a step is
// safe, starting it might start it twice.
func (s State) running() bool { return !s.pending() && !s.Settled() }

func (s *Step) overdue() bool { return s.State.running() && !s.OverdueSince.IsZero() }

// Step is one change to one object, with its reason.
type Step struct {
	Object Object `json:"object"`
	Action Action `json:"action"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	// Reason says why the step is there or, once that is the question, why it
	// was skipped or has failed.
	Reason Reason `json:"reason,omitzero"`
	// Priority orders disruptive steps: lower ones go first.
	Priority int `json:"priority,omitempty"`
	// Disruptive steps go in batches; the others all go at once, before them.
	Disruptive bool `json:"disruptive"`
	// Uncounted steps move no object, such as one that waits for a report, and are not part of the totals.
	Uncounted bool `json:"-"`
	// Disturbed is set on a disruptive step whose object is being disrupted already, by a plan with another
	// target. Such steps start first and all at once: they disrupt nothing more.
	Disturbed bool `json:"disturbed,omitempty"`
	// Held is set on a pending step that waits for something of its own, which Reason names. It holds no other
	// step.
	Held bool `json:"held,omitempty"`
	// OverdueSince is when a step had run for as long as others wait for it. One that runs on holds no other
	// step any more; the plan ends when it has settled.
	OverdueSince time.Time `json:"overdueSince,omitzero"`
	// Batch is the batch that the step was started in. On a pending step it is a
	// forecast, made each time. Zero is outside any batch.
	Batch int   `json:"batch,omitempty"`
	State State `json:"state"`
	// Progress tells how far a running step is, such as "2/3 ready".
	Progress  string    `json:"progress,omitempty"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
}

// Plan is everything that one passage would do to get its subject to its target.
type Plan struct {
	Passage string `json:"passage"`
	// Subject is the resource that started the passage.
	Subject Object `json:"subject"`
	// Target is what everything moves to: a revision, a generation, a mode.
	Target string `json:"target,omitempty"`
	// Moves are the kinds that are being moved, and so what totals count; empty
	// counts every step. Namespaces that are relabelled are steps as well, but
	// are not part of the totals.
	Moves []string `json:"moves,omitempty"`
	// Hold is the first gate that keeps the plan from starting anything.
	Hold  *Reason `json:"hold,omitempty"`
	Steps []Step  `json:"steps"`
}

// HasChanges tells whether anything is left to do, now or once the hold is lifted.
func (p Plan) HasChanges() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return !s.State.Settled() })
}

// Noun is what one of the things that are being moved is called: its kind, or "workload" where there are several.
func (p Plan) Noun() string {
	if len(p.Moves) == 1 {
		return p.Moves[0]
	}
	return "workload"
}

// Counts are steps by state.
type Counts struct {
	// Total is what is to be moved, so steps that are skipped or come later are not in it.
	Total   int `json:"total"`
	Pending int `json:"pending"`
	Running int `json:"running"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	Later   int `json:"later,omitempty"`
}

// Counts counts the steps of the kind that the plan moves, but for those that are not to be counted.
func (p Plan) Counts() Counts {
	var c Counts
	for i := range p.Steps {
		step := &p.Steps[i]
		if step.Uncounted || len(p.Moves) > 0 && !slices.Contains(p.Moves, step.Object.Kind) {
			continue
		}
		switch {
		case step.State.pending():
			c.Pending++
		case step.State == Done:
			c.Done++
		case step.State == Failed:
			c.Failed++
		case step.State == Skipped:
			c.Skipped++
		case step.State == Later:
			c.Later++
		default:
			c.Running++
		}
	}
	c.Total = c.Pending + c.Running + c.Done + c.Failed
	return c
}

// Failures lists the failed steps of every kind, the most recent first.
func (p Plan) Failures() []Step {
	var failed []Step
	for i := range p.Steps {
		if p.Steps[i].State == Failed {
			failed = append(failed, p.Steps[i])
		}
	}
	slices.SortStableFunc(failed, func(a, b Step) int { return b.EndedAt.Compare(a.EndedAt) })
	return failed
}
