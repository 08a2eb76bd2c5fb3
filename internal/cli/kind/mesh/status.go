package mesh

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/passage"
)

// meshStatus is how far the consumers of a Mesh are.
type meshStatus struct {
	// Mode that is asked for, and the one that proxies are configured by.
	Mode    kumav1alpha1.Mode `json:"mode"`
	InForce kumav1alpha1.Mode `json:"inForce"`
	// Asked says that somebody wants consumers to be switched, or back.
	Asked  bool `json:"asked"`
	Revert bool `json:"revert,omitempty"`
	// observed says that the operator has seen the request.
	observed bool
	// Switched and Total count consumers.
	Switched  int32                           `json:"switched"`
	Total     int32                           `json:"total"`
	Consumers []kumav1alpha1.MigratedConsumer `json:"consumers"`
	// Advice are things that a person could do.
	Advice []string `json:"advice"`
}

// status is how far the consumers of a Mesh are.
type status struct {
	render.StatusReport
	Switching *meshStatus `json:"switching,omitempty"`
}

func newStatus(mesh *kumav1alpha1.Mesh, now time.Time) *status {
	progress := consumers.ReadProgress(mesh)
	// An intent is an annotation, which no generation counts.
	reported := progress.Observed && mesh.Status.ObservedGeneration == mesh.Generation
	s := &status{
		StatusReport: render.NewStatusReport(progress.Plan, progress.Batching, mesh.Status.Conditions, reported, now),
		Switching: &meshStatus{
			Mode: mesh.Mode(), InForce: mesh.ModeInForce(), Asked: progress.Requested, observed: progress.Observed,
			Consumers: []kumav1alpha1.MigratedConsumer{}, Advice: meshAdvice(mesh, progress.Requested),
		},
	}
	if record := mesh.Status.Migration; record != nil {
		s.Switching.Revert, s.Switching.Switched, s.Switching.Total = record.Revert, record.Switched, record.Total
		s.Switching.Consumers = append(s.Switching.Consumers, record.Consumers...)
		s.awaitOutcome(passage.Outcome(record.Phase))
	}
	s.setHeadline()
	return s
}

// awaitOutcome has a plan that is over be in progress until the status of the Mesh says so. The operator records what becomes
// of each consumer before it writes the status: in between, the condition describes the progress before.
func (s *status) awaitOutcome(written passage.Outcome) {
	switch s.State {
	case passage.Completed, passage.OutcomeFailed, passage.Stopped:
		if s.State != written {
			s.State = passage.InProgress
		}
	}
}

// meshAdvice is what a person could do next.
func meshAdvice(mesh *kumav1alpha1.Mesh, asked bool) []string {
	command := func(verb, more string) string { return fmt.Sprintf("fairlead %s mesh %s%s", verb, mesh.Name, more) }
	back := "To go back: " + command("migrate", " --revert")
	if mode := mesh.Mode(); mode == kumav1alpha1.ModeEverywhere || mode == kumav1alpha1.ModeExclusive {
		back = fmt.Sprintf("To go back: set spec.meshServices: %s, where those that are switched stay so, then %s",
			kumav1alpha1.ModeReachableBackendRefs, command("migrate", " --revert"))
	}
	record := mesh.Status.Migration
	switch {
	case !asked && record == nil && mesh.Mode() == kumav1alpha1.ModeDisabled:
		return []string{"To see what MeshServices would change: " + command("plan", " --mode "+string(kumav1alpha1.ModeReachableBackendRefs))}
	case !asked && record == nil && mesh.Mode() == kumav1alpha1.ModeReachableBackendRefs:
		return []string{"To switch consumers over: " + command("migrate", " --batch-size 10")}
	case record == nil:
		return []string{}
	case mesh.Annotations[fairlead.AnnotationPaused] == "true":
		return []string{"To resume: " + command("resume", ""), back}
	case record.Failed > 0 && record.Revert:
		return []string{"To try again: " + command("retry", "")}
	case record.Failed > 0:
		return []string{"To try again: " + command("retry", ""), back}
	case record.Phase != string(passage.Completed) && record.Revert:
		return []string{"To pause: " + command("pause", "")}
	case record.Phase != string(passage.Completed):
		return []string{"To pause: " + command("pause", ""), back}
	case mesh.Mode() == kumav1alpha1.ModeDisabled:
		return []string{"To clear the record of switched consumers, which has no effect in mode Disabled: " + command("migrate", " --revert")}
	case record.Revert || mesh.Mode() == kumav1alpha1.ModeExclusive:
		return []string{back}
	}
	return []string{"To see what mode Exclusive changes: " + command("plan", " --mode "+string(kumav1alpha1.ModeExclusive)), back}
}

// setHeadline takes what the operator reports.
func (s *status) setHeadline() {
	condition := meta.FindStatusCondition(s.Conditions, kumav1alpha1.ConditionConsumersSwitched)
	switch {
	case !s.Switching.Asked && len(s.Switching.Consumers) == 0:
		s.Headline = "no switch of its consumers has been requested"
	case !s.Switching.observed:
		s.State, s.Headline = passage.InProgress, "the operator has not seen the request yet"
	case condition != nil:
		s.Headline = condition.Message
		if s.Switching.Mode == kumav1alpha1.ModeDisabled && s.Switching.Switched > 0 {
			s.Headline += "; that has no effect in mode Disabled, and has at once in mode ReachableBackendRefs"
		}
	}
}

func (s *status) PrintDetails(w io.Writer, format render.Format) {
	s.printSwitching(w, format)
	render.PrintConditions(w, format, omitHeadline(s.Conditions, s.Headline), s.At)
}

func (s *status) DrawDetails(w io.Writer) { s.printSwitching(w, render.Text) }

func (s *status) WriteChanges(l *render.LineWriter) {
	l.Line("state", fmt.Sprintf("%s: %s", s.Subject, s.State))
	l.Line("headline", s.Headline)
	l.Steps(s.Steps, render.StepText)
}

func (s *status) TimeoutHint() string {
	if s.Reported && s.State == passage.InProgress {
		return "if there is no progress, check that the operator runs"
	}
	return s.StatusReport.TimeoutHint()
}

func (s *status) printSwitching(w io.Writer, format render.Format) {
	m := s.Switching
	fmt.Fprintf(w, "\nMode:       %s\n", m.mode())
	if m.Total > 0 {
		fmt.Fprintf(w, "Switched:   %d of %s\n", m.Switched, render.Count(int(m.Total), "consumer"))
	}
	// Batches are those of what was asked for before, until that is followed.
	if s.Batches > 0 && m.observed {
		fmt.Fprintf(w, "Batch:      %d of %d\n", s.Batch, s.Batches)
	}
	if s.Progress.Total > 0 && m.observed {
		fmt.Fprintf(w, "%s\n", render.Bar(s.Progress))
	}
	shown, more := render.Limit(format, m.Consumers)
	if more > 0 {
		shown = openConsumersFirst(m.Consumers)[:len(shown)]
	}
	render.PrintList(w, format, []string{"CONSUMER", "STATE", "BATCH", "SINCE", "MESSAGE"}, shown, func(c kumav1alpha1.MigratedConsumer) []string {
		batch := render.BatchText(passage.Step{Batch: int(c.Batch)})
		return []string{c.Name, string(c.State), batch, duration.HumanDuration(s.At.Sub(c.Since.Time)), c.Message}
	})
	render.PrintMore(w, "", more)
	if len(m.Advice) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(m.Advice, "\n"))
	}
}

// openConsumersFirst are the consumers in the order in which a person wants to know of them.
func openConsumersFirst(consumers []kumav1alpha1.MigratedConsumer) []kumav1alpha1.MigratedConsumer {
	rank := map[kumav1alpha1.ConsumerState]int{
		kumav1alpha1.ConsumerFailed: 0, kumav1alpha1.ConsumerSwitching: 1, kumav1alpha1.ConsumerReverting: 1, kumav1alpha1.ConsumerWaiting: 2,
		kumav1alpha1.ConsumerSwitched: 3, kumav1alpha1.ConsumerReverted: 3,
	}
	sorted := slices.Clone(consumers)
	slices.SortStableFunc(sorted, func(a, b kumav1alpha1.MigratedConsumer) int { return rank[a.State] - rank[b.State] })
	return sorted
}

// mode in words, with the one in force where that is another.
func (s *meshStatus) mode() string {
	if s.InForce == s.Mode {
		return string(s.Mode)
	}
	return fmt.Sprintf("%s, for now as %s: see the condition %s", s.Mode, s.InForce, kumav1alpha1.ConditionGenerated)
}

// omitHeadline tells of conditions what the headline does not.
func omitHeadline(conditions []metav1.Condition, headline string) []metav1.Condition {
	rows := slices.Clone(conditions)
	for i := range rows {
		if message := rows[i].Message; message != "" && strings.HasPrefix(headline, message) {
			rows[i].Message = "see above"
		}
	}
	return rows
}
