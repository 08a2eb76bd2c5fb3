package revision

import (
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Status is how far the operator is with a revision or a tag.
type Status struct {
	render.StatusReport
	// References are what uses the resource.
	References []usage.Reference `json:"references,omitzero"`
}

// NewStatus decides how far a plan is.
func NewStatus(plan passage.Plan, conditions []metav1.Condition, reported bool, references []usage.Reference, now time.Time) *Status {
	return &Status{
		StatusReport: render.NewStatusReport(plan, passage.Batching{}, conditions, reported, now),
		References:   append([]usage.Reference{}, references...),
	}
}

func (s *Status) PrintDetails(w io.Writer, format render.Format) {
	s.StatusReport.PrintDetails(w, format)
	render.PrintList(w, format, []string{"USED BY", "NAMESPACE", "NAME", "THROUGH"}, s.References, func(ref usage.Reference) []string {
		return []string{ref.Kind, render.OrDash(ref.Namespace), ref.Name, ref.By}
	})
}

func (s *Status) ExitError() error {
	if s.Reported && NeedsUser(s.Conditions) {
		return console.ExitError{Code: console.ExitFailed}
	}
	return s.StatusReport.ExitError()
}

func (s *Status) WaitError() error { return s.ExitError() }
