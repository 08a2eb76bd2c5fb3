package istio

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/istio"
	"github.com/fairlead/fairlead/internal/revision/workload"
)

// workloads are what moves with an Istio, and how fast.
type workloads struct {
	plan     passage.Plan
	batching passage.Batching
}

// planWorkloads plans the workloads of an Istio for the revision that its own plan leads to. It is nil for one that moves
// none.
func planWorkloads(o workload.Observed, own passage.Plan, now time.Time) *workloads {
	config := o.Istio.Spec.UpdateStrategy.WorkloadMigration
	if (config == nil || config.Strategy == v1.WorkloadMigrationStrategyDisabled) && !workload.Interrupted(o.Istio) {
		return nil
	}
	if own.Target != "" && own.Target != o.Target.Name {
		o = o.WithTarget(o.FutureTarget(own.Target, targetVersion(own)))
	}
	return &workloads{plan: workload.Plan(o, now), batching: o.Batching()}
}

// targetVersion is the version of a revision that the plan of an Istio creates; empty if the plan creates none.
func targetVersion(own passage.Plan) string {
	for _, step := range own.Steps {
		if step.Action == istio.ActionCreate && step.Object.Name == own.Target {
			return step.To
		}
	}
	return ""
}

func (plan *workloadsPlan) print(w io.Writer, format render.Format) {
	if plan == nil || plan.Target == "" {
		return
	}
	fmt.Fprintln(w)
	counts := plan.Counts()
	switch {
	case len(render.Pending(plan.Plan)) == 0 && counts.Running+counts.Failed == 0:
		fmt.Fprintf(w, "No workload is left to move to %s.\n", plan.Target)
	default:
		render.Paragraph(w, fmt.Sprintf("Workloads to %s: %s.", plan.Target, plan.summarize()))
	}
	if hold := plan.Hold; hold != nil && (counts.Total > 0 || !isTemporary(*hold)) {
		render.Paragraph(w, holdText(*hold))
	}
	steps := render.Open(render.SortByBatch(plan.Steps))
	render.PrintList(w, format, []string{"BATCH", "HOW", "OBJECT", "FROM", "WHY"}, steps, func(s passage.Step) []string {
		return []string{render.BatchText(s), actionText(s), s.Object.String(), render.OrDash(s.From), s.Reason.Message}
	})
}

// actionText is what will be done to an object, or how far that is.
func actionText(s passage.Step) string {
	if s.State == passage.Running || s.State == passage.Failed {
		return strings.ToLower(render.StateText(s))
	}
	return string(s.Action)
}

// summarize tells how much there is to move, and how long that takes at the least.
func (plan *workloadsPlan) summarize() string {
	counts := plan.Counts()
	left := counts.Pending + counts.Running
	text := render.Count(left, plan.Noun())
	switch {
	case left == 0:
		text = fmt.Sprintf("none left of %s", render.Count(counts.Total, plan.Noun()))
	case counts.Done > 0:
		text += fmt.Sprintf(" of %d", counts.Total)
	}
	if namespaces := len(slices.DeleteFunc(render.Pending(plan.Plan), func(s passage.Step) bool { return s.Object.Kind != "Namespace" })); namespaces > 0 {
		text = "the labels of " + render.Count(namespaces, "namespace") + ", then " + text
	}
	if plan.Estimate.Batches > 0 && left > 0 {
		text += fmt.Sprintf(" in %s of at most %d", render.Count(plan.Estimate.Batches, "batch"), max(plan.batching.Size, 1))
		text += fmt.Sprintf(", taking at least %s and as long as pods need to get ready", plan.Estimate.Delays.Round(time.Second))
	}
	if counts.Failed > 0 {
		text += fmt.Sprintf("; %d failed", counts.Failed)
		if plan.batching.FailFast {
			text += ", and failurePolicy FailFast starts no further batch"
		}
	}
	// Whatever their kind, unlike the counts.
	if stay := (passage.Plan{Steps: plan.Steps}).Counts().Skipped; stay > 0 {
		text += fmt.Sprintf("; %d not moved", stay)
	}
	return text
}

// isTemporary tells a hold that ends by itself from one that a user has to end.
func isTemporary(hold passage.Reason) bool {
	switch v1.Reason(hold.Code) {
	case v1.ReasonRevisionNotActive, v1.ReasonRevisionNotReady, v1.ReasonTagNotMoved:
		return true
	}
	return false
}

func holdText(hold passage.Reason) string {
	if isTemporary(hold) {
		return "Waiting: " + hold.Message
	}
	return "Held: " + hold.Message
}

// printWorkloads draws a bar, and the steps that run, have failed or are skipped.
func printWorkloads(w io.Writer, format render.Format, v *passage.View) {
	if v == nil || v.Target == "" {
		return
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "Workloads to %s: %s\n", v.Target, v.State)
	if v.Progress.Total > 0 {
		fmt.Fprintln(w, render.Bar(v.Progress)+" "+progressText(*v))
	}
	if v.Reason != nil && v.Reason.Code != passage.CodeNothingLeft {
		line := v.Reason.Message
		if v.State == passage.Held {
			line = holdText(*v.Reason)
		}
		render.Paragraph(w, line)
	}
	render.PrintList(w, format, []string{"BATCH", "HOW", "OBJECT", "FROM", "STATE", "WHY"}, openSteps(v.Steps), func(s passage.Step) []string {
		return []string{render.BatchText(s), string(s.Action), s.Object.String(), render.OrDash(s.From), render.StateText(s), s.Reason.Message}
	})
}

// openSteps are the steps that run, then those that have failed, then those that stay.
func openSteps(steps []passage.Step) []passage.Step {
	order := []passage.State{passage.Running, passage.Failed, passage.Skipped}
	open := slices.DeleteFunc(slices.Clone(steps), func(s passage.Step) bool { return !slices.Contains(order, s.State) })
	slices.SortStableFunc(open, func(a, b passage.Step) int { return slices.Index(order, a.State) - slices.Index(order, b.State) })
	return open
}

func progressText(v passage.View) string {
	p := v.Progress
	text := fmt.Sprintf("%d of %d done", p.Done, p.Total)
	if p.Running > 0 {
		text += fmt.Sprintf(", %d running", p.Running)
	}
	if p.Failed > 0 {
		text += fmt.Sprintf(", %d failed", p.Failed)
	}
	if batches := v.BatchText(); batches != "" {
		text += ", " + batches
	}
	return text
}
