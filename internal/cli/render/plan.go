package render

import (
	"fmt"
	"io"

	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/passage"
)

// Plan is what the operator does about a resource. Kinds embed a PlanReport and add what only they have; -o json
// encodes all of it.
type Plan interface {
	// Print prints what `plan` shows.
	Print(w io.Writer, format Format)
	// ExitError is how `plan` ends: nil when there is nothing to do.
	ExitError() error
}

// PlanReport is the plan that the operator would make.
type PlanReport struct {
	passage.Plan
	// Note is what the reader should know about how the plan was made.
	Note string `json:"-"`
}

var _ Plan = &PlanReport{}

func (r *PlanReport) Print(w io.Writer, format Format) {
	PrintPlan(w, format, r.Plan)
	Note(w, r.Note)
}

func (r *PlanReport) ExitError() error {
	switch {
	case len(r.Failures()) > 0:
		return console.ExitError{Code: console.ExitFailed}
	case len(Pending(r.Plan)) > 0:
		return console.ExitError{Code: console.ExitUnfinished}
	}
	return nil
}

// PrintPlan prints a headline and the steps that are not done.
func PrintPlan(w io.Writer, format Format, plan passage.Plan) {
	PrintHeadline(w, plan)
	PrintSteps(w, format, Open(plan.Steps))
}

// PrintHeadline prints how many changes a plan makes, or why it makes none.
func PrintHeadline(w io.Writer, plan passage.Plan) {
	PrintHold(w, plan)
	switch changes := len(Pending(plan)); {
	case len(plan.Failures()) > 0:
		fmt.Fprintf(w, "%s cannot continue.\n", plan.Subject)
	case changes > 0:
		fmt.Fprintf(w, "%s to %s: %s.\n", plan.Subject, plan.Target, Count(changes, "change"))
	case plan.HasChanges():
		fmt.Fprintf(w, "Nothing to do for %s but to wait.\n", plan.Subject)
	default:
		fmt.Fprintf(w, "Nothing to do for %s.\n", plan.Subject)
	}
}

// PrintHold prints why the operator starts nothing.
func PrintHold(w io.Writer, plan passage.Plan) {
	if plan.Hold != nil {
		fmt.Fprintf(w, "Held: %s\n", plan.Hold.Message)
	}
}
