package istio

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
)

// plan is what the operator does about the control planes and the workloads of an Istio.
type plan struct {
	render.PlanReport
	// Workloads is absent where none are moved.
	Workloads *workloadsPlan `json:"workloads,omitempty"`
}

type workloadsPlan struct {
	passage.Plan
	// Estimate is what the plan takes at the least, however fast pods get ready.
	Estimate passage.Estimate `json:"estimate"`
	batching passage.Batching
}

func (k *Kind) Plan(ctx context.Context, r connect.Resource) (render.Plan, error) {
	o, err := k.observe(ctx, r.Cluster.Client, r.Key.Name)
	if err != nil {
		return nil, r.NotFoundOr(err)
	}
	return newPlan(o, time.Now()), nil
}

func newPlan(o observed, now time.Time) *plan {
	p := &plan{PlanReport: render.PlanReport{Plan: o.plan, Note: o.note}}
	if w := o.workloads; w != nil {
		p.Workloads = &workloadsPlan{
			// The decision has the batch of each step.
			Plan:     passage.Next(w.plan, w.batching, now).Plan,
			Estimate: passage.EstimateOf(w.plan, w.batching, now),
			batching: w.batching,
		}
	}
	return p
}

func (p *plan) Print(w io.Writer, format render.Format) {
	if !p.HasChanges() && p.Hold == nil && p.Workloads != nil && len(render.Pending(p.Workloads.Plan)) > 0 {
		fmt.Fprintf(w, "The control planes of %s stay as they are.\n", p.Subject)
	} else {
		render.PrintPlan(w, format, p.Plan)
	}
	p.Workloads.print(w, format)
	render.Note(w, p.Note)
}

// ExitError puts changes before workloads that failed, which do not keep the others from moving.
func (p *plan) ExitError() error {
	w := p.Workloads
	switch err := p.PlanReport.ExitError(); {
	case err != nil || w == nil:
		return err
	case len(render.Pending(w.Plan)) > 0:
		return console.ExitError{Code: console.ExitUnfinished}
	case len(w.Failures()) > 0:
		return console.ExitError{Code: console.ExitFailed}
	}
	return nil
}
