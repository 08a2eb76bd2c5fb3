package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/passage"
)

// Status is how far the operator is with a resource. Kinds embed a StatusReport and add what only they have; -o json
// encodes all of it.
type Status interface {
	// Report is the part that all kinds have.
	Report() *StatusReport
	// PrintDetails prints what `status` shows after the headline.
	PrintDetails(w io.Writer, format Format)
	// DrawDetails draws what `watch` shows after the headline on a terminal.
	DrawDetails(w io.Writer)
	// WriteChanges writes what is new since the status before, where `watch` has no terminal.
	WriteChanges(l *LineWriter)
	// ExitError is how `status` ends: nil when all is done.
	ExitError() error
	// WaitError is how `watch --wait` ends; it goes on while that is ExitUnfinished.
	WaitError() error
	// TimeoutHint is what may keep the operator from finishing, if that is known.
	TimeoutHint() string
}

// StatusReport is the view that everything draws, and what the operator last wrote.
type StatusReport struct {
	passage.View
	// Reported is false while the operator has not seen the latest spec.
	Reported   bool               `json:"reported"`
	Conditions []metav1.Condition `json:"conditions"`
	// Part is what the view speaks of, if that is not all of the resource: "control planes".
	Part string `json:"-"`
	// Deleting is set where the operator does not report any more.
	Deleting bool `json:"-"`
	// NeedsUser is set where the operator has tried, and only a user can help.
	NeedsUser bool `json:"-"`
}

var _ Status = &StatusReport{}

// NewStatusReport decides how far a plan is.
func NewStatusReport(plan passage.Plan, batching passage.Batching, conditions []metav1.Condition, reported bool, now time.Time) StatusReport {
	return StatusReport{
		View:       passage.NewView(passage.Next(plan, batching, now), now),
		Reported:   reported,
		Conditions: append([]metav1.Condition{}, conditions...),
	}
}

func (r *StatusReport) Report() *StatusReport { return r }

func (r *StatusReport) PrintDetails(w io.Writer, format Format) {
	PrintSteps(w, format, r.Steps)
	PrintConditions(w, format, r.Conditions, r.At)
}

func (r *StatusReport) DrawDetails(w io.Writer) { PrintSteps(w, Text, Open(r.Steps)) }

func (r *StatusReport) WriteChanges(l *LineWriter) {
	l.Line("state", fmt.Sprintf("%s to %s: %s", r.name(), OrDash(r.Target), r.State))
	l.Steps(r.Steps, StepText)
}

func (r *StatusReport) ExitError() error {
	switch {
	case r.State == passage.OutcomeFailed, r.State == passage.Stopped, r.Reported && r.NeedsUser:
		return console.ExitError{Code: console.ExitFailed}
	case r.State != passage.Completed || !r.Reported:
		return console.ExitError{Code: console.ExitUnfinished}
	}
	return nil
}

func (r *StatusReport) WaitError() error { return r.ExitError() }

const notReported = "the operator has not reported on the latest spec yet: is it running?"

func (r *StatusReport) TimeoutHint() string {
	if !r.Reported {
		return notReported
	}
	return ""
}

// name is the resource, with the part of it that the view speaks of.
func (r *StatusReport) name() string {
	if r.Part == "" {
		return r.Subject.String()
	}
	return r.Part + " of " + r.Subject.String()
}

// Title names the resource and its target.
func (r *StatusReport) Title() string {
	title := r.name()
	title = strings.ToUpper(title[:1]) + title[1:]
	if r.Target == "" {
		return title
	}
	return title + " to " + r.Target
}

// PrintStatus prints what `status` shows.
func PrintStatus(w io.Writer, format Format, s Status) {
	r := s.Report()
	fmt.Fprintf(w, "%s: %s\n", r.Title(), r.State)
	fmt.Fprintln(w, format.Fit(r.Headline))
	if !r.Reported && !r.Deleting {
		fmt.Fprintln(w, "T"+notReported[1:])
	}
	s.PrintDetails(w, format)
}

// PrintConditions prints the conditions of a resource at a time, by type: in the status their order depends on which writer
// was first.
func PrintConditions(w io.Writer, format Format, conditions []metav1.Condition, now time.Time) {
	conditions = slices.SortedFunc(slices.Values(conditions), func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	PrintList(w, format, []string{"CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"}, conditions, func(c metav1.Condition) []string {
		return []string{c.Type, string(c.Status), c.Reason, duration.HumanDuration(now.Sub(c.LastTransitionTime.Time)), c.Message}
	})
}
