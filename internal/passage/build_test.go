package passage

import (
	"strings"
	"time"
)

// epoch is when every test begins; at is so many seconds later.
var epoch = time.Date(2025, 10, 21, 10, 30, 0, 0, time.UTC)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

type option func(*Step)

// deploy is a disruptive step, pending unless an option says otherwise.
func deploy(name string, options ...option) Step {
	step := Step{
		Object:     Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name},
		Action:     "Restart",
		From:       "default-v1-24-0",
		To:         "default-v1-26-0",
		Disruptive: true,
		State:      Pending,
	}
	for _, option := range options {
		option(&step)
	}
	return step
}

// relabel is a step that is not disruptive.
func relabel(name string, options ...option) Step {
	step := Step{
		Object: Object{APIVersion: "v1", Kind: "Namespace", Name: name},
		Action: "Relabel",
		From:   "default-v1-24-0",
		To:     "default-v1-26-0",
		State:  Pending,
	}
	for _, option := range options {
		option(&step)
	}
	return step
}

func deploys(names string, options ...option) []Step {
	var steps []Step
	for name := range strings.FieldsSeq(names) {
		steps = append(steps, deploy(name, options...))
	}
	return steps
}

func state(s State) option { return func(step *Step) { step.State = s } }

func priority(p int) option { return func(step *Step) { step.Priority = p } }

// disturbed is a step whose object is being disrupted already.
func disturbed(step *Step) { step.Disturbed = true }

// heldByTag is a step that waits for something of its own.
func heldByTag(step *Step) {
	step.Held, step.Reason = true, Because("TagNotMoved", "tag prod has not moved")
}

func overdue(seconds int) option { return func(step *Step) { step.OverdueSince = at(seconds) } }

func running(batch int) option {
	return func(step *Step) { step.State, step.Batch, step.StartedAt = Running, batch, epoch }
}

func done(batch, seconds int) option {
	return func(step *Step) {
		step.State, step.Batch, step.StartedAt, step.EndedAt = Done, batch, epoch, at(seconds)
	}
}

func failed(batch, seconds int) option {
	return func(step *Step) {
		done(batch, seconds)(step)
		step.State = Failed
		step.Reason = Because("ReadinessTimeout", "not ready after 5m0s")
	}
}

func planOf(groups ...[]Step) Plan {
	plan := Plan{
		Passage: "migration",
		Subject: Object{APIVersion: "sailoperator.io/v1", Kind: "Istio", Name: "default"},
		Target:  "default-v1-26-0",
		Moves:   []string{"Deployment"},
	}
	for _, steps := range groups {
		plan.Steps = append(plan.Steps, steps...)
	}
	return plan
}
