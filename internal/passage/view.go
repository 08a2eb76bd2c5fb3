package passage

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// View is a plan as it is shown: the one model that the command line and the
// dashboard draw, and that -o json prints.
type View struct {
	Passage string `json:"passage"`
	Subject Object `json:"subject"`
	Target  string `json:"target,omitempty"`
	// State is the outcome of the plan; Settled tells whether it stays like that
	// until something changes.
	State   Outcome `json:"state"`
	Settled bool    `json:"settled"`
	// Headline is the whole view in one line.
	Headline string `json:"headline"`
	Progress Counts `json:"progress"`
	Batch    int    `json:"batch"`
	Batches  int    `json:"batches"`
	// Reason says why nothing starts at the moment.
	Reason *Reason `json:"reason,omitempty"`
	Steps  []Step  `json:"steps"`
	// Failures are the failed ones among the steps, the most recent first.
	Failures []Step `json:"failures"`
	// At is the time of the view, so that renderers need no clock.
	At time.Time `json:"at"`
	// ChangesAt is when the view changes without an event.
	ChangesAt time.Time `json:"nextLook,omitzero"`
}

// NewView shows a decision as it was made at the time now.
func NewView(d Decision, now time.Time) View {
	v := View{
		Passage:  d.Plan.Passage,
		Subject:  d.Plan.Subject,
		Target:   d.Plan.Target,
		State:    d.Outcome,
		Settled:  d.Settled(),
		Progress: d.Plan.Counts(),
		Batch:    d.Batch,
		Batches:  d.Batches,
		Reason:   d.Reason,
		// Scripts iterate over these, so none is ever null.
		Steps:     append([]Step{}, d.Plan.Steps...),
		Failures:  append([]Step{}, d.Plan.Failures()...),
		At:        now,
		ChangesAt: d.RequeueAt,
	}
	v.Headline = v.headline()
	return v
}

// BatchText is which batch is under way, or how many there are before the first one, or empty if there is none.
func (v View) BatchText() string {
	switch {
	case v.Batch > 0:
		return fmt.Sprintf("batch %d of %d", v.Batch, v.Batches)
	case v.Batches == 1:
		return "1 batch"
	case v.Batches > 0:
		return fmt.Sprintf("%d batches", v.Batches)
	}
	return ""
}

func (v View) headline() string {
	var parts []string
	add := func(show bool, format string, args ...any) {
		if show {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	p := v.Progress
	add(p.Total > 0, "%d of %d done", p.Done, p.Total)
	add(p.Running > 0, "%d running", p.Running)
	add(p.Failed > 0, "%d failed", p.Failed)
	add(p.Skipped > 0, "%d skipped", p.Skipped)
	add(p.Later > 0, "%d later", p.Later)
	uncounted := slices.IndexFunc(v.Steps, func(s Step) bool { return s.Uncounted })
	failed := slices.IndexFunc(v.Failures, func(s Step) bool { return s.Uncounted })
	add(failed >= 0 && p.Total > 0, "%s failed", v.Subject)
	add(v.Batches > 0, "%s", v.BatchText())
	counts := strings.Join(parts, ", ")

	waiting := v.State == Delaying || v.State == Held || v.State == Stopped
	switch {
	case counts == "" && failed >= 0:
		return v.Failures[failed].Reason.Message
	case counts == "" && uncounted >= 0:
		return v.Steps[uncounted].Reason.Message
	case v.Reason != nil && counts == "":
		return v.Reason.Message
	case v.Reason != nil && waiting:
		return counts + ": " + v.Reason.Message
	case counts == "":
		return string(v.State)
	default:
		return counts
	}
}
