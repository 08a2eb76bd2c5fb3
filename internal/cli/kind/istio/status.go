package istio

import (
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind/revision"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/istio"
	"github.com/fairlead/fairlead/internal/revision/workload"
)

// status is how far the control planes and the workloads of an Istio are.
type status struct {
	render.StatusReport
	// Workloads is absent where none are moved.
	Workloads *passage.View `json:"workloads,omitempty"`
	// withoutPruning leaves out control planes that wait to be deleted: the grace period may be days.
	withoutPruning passage.View
}

func newStatus(o observed, now time.Time) *status {
	conditions, reported := o.istio.Status.Conditions, o.istio.Status.ObservedGeneration == o.istio.Generation
	s := &status{StatusReport: render.NewStatusReport(o.plan, passage.Batching{}, conditions, reported, now)}
	s.NeedsUser = revision.NeedsUser(conditions)
	plan := o.plan
	plan.Steps = slices.DeleteFunc(slices.Clone(plan.Steps), func(s passage.Step) bool { return s.Action == istio.ActionPrune })
	s.withoutPruning = passage.NewView(passage.Next(plan, passage.Batching{}, now), now)
	if w := o.workloads; w != nil {
		view := passage.NewView(passage.Next(w.plan, w.batching, now), now)
		s.Workloads = &view
		if view.Target != "" {
			s.Part = "control planes"
		}
	}
	return s
}

func (s *status) PrintDetails(w io.Writer, format render.Format) {
	render.PrintSteps(w, format, s.Steps)
	printWorkloads(w, format, s.Workloads)
	render.PrintConditions(w, format, s.Conditions, s.At)
}

func (s *status) DrawDetails(w io.Writer) {
	s.StatusReport.DrawDetails(w)
	printWorkloads(w, render.Text, s.Workloads)
	if text := s.unresolvedText(); text != "" {
		fmt.Fprintln(w)
		render.Paragraph(w, text)
	}
}

func (s *status) WriteChanges(l *render.LineWriter) {
	s.StatusReport.WriteChanges(l)
	if text := s.unresolvedText(); text != "" {
		l.Line("unresolved", text)
	} else {
		l.Forget("unresolved")
	}
	w := s.Workloads
	if w == nil || w.Target == "" {
		return
	}
	l.Steps(w.Steps, stepText)
	if w.State == passage.Held && w.Reason != nil {
		line := holdText(*w.Reason)
		l.OnChange("hold", line, "workloads: "+line)
	} else {
		l.Forget("hold")
	}
	l.OnChange("workloads", fmt.Sprintf("%s %s %d %d", w.Target, w.State, w.Batch, w.Batches),
		fmt.Sprintf("workloads to %s: %s, %s", w.Target, w.State, progressText(*w)))
}

// unresolvedText tells which labels name nothing, if any.
func (s *status) unresolvedText() string {
	condition := meta.FindStatusCondition(s.Conditions, string(v1.ConditionResolvedRefs))
	if condition == nil || condition.Status != metav1.ConditionFalse {
		return ""
	}
	return "Warning: " + condition.Message
}

func stepText(s passage.Step) string {
	if s.Action == workload.ActionStay && s.State != passage.Done && (s.State != passage.Running || s.Batch == 0) {
		return s.Object.String() + ": stays: " + s.Reason.Message
	}
	return render.StepText(s)
}

// ExitError puts what is unfinished before workloads that failed, which do not keep the others from moving.
func (s *status) ExitError() error {
	w := s.Workloads
	switch err := s.StatusReport.ExitError(); {
	case err != nil || w == nil:
		return err
	case !w.Settled:
		return console.ExitError{Code: console.ExitUnfinished}
	case w.State != passage.Completed:
		return console.ExitError{Code: console.ExitFailed}
	}
	return nil
}

// WaitError ends a wait that only a change of the spec would end.
func (s *status) WaitError() error {
	waited := *s
	waited.View = s.withoutPruning
	err := waited.ExitError()
	if console.ExitCode(err, true) == console.ExitUnfinished && s.needsSpecChange() {
		return console.ExitError{Code: console.ExitFailed, Message: s.Workloads.Reason.Message}
	}
	return err
}

// needsSpecChange tells whether no workload moves until the spec changes. A pause is meant to end.
func (s *status) needsSpecChange() bool {
	w := s.Workloads
	if !s.Reported || w == nil || w.State != passage.Held || w.Progress.Running > 0 || w.Reason == nil {
		return false
	}
	switch v1.Reason(w.Reason.Code) {
	case v1.ReasonMaxVersionExceeded, v1.ReasonInvalidSettings, v1.ReasonNotRevisionBased, v1.ReasonMigrationDisabled:
		return true
	}
	return false
}
