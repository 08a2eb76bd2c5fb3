package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload"
)

// tty keeps one picture up to date on a terminal.
type tty struct {
	out    io.Writer
	height func() int
	drawn  bool
}

func (p *tty) draw(r statusReport) {
	var picture bytes.Buffer
	title := r.Subject.String()
	if r.Target != "" {
		title += " to " + r.Target
	}
	fmt.Fprintf(&picture, "%s: %s\n%s\n", title, r.State, strings.Join(render.Wrap(r.Headline, render.Columns), "\n"))
	var open []passage.Step
	for _, s := range r.Steps {
		if s.State != passage.Done && r.Rollout == nil && r.Adoption == nil && r.Switching == nil {
			open = append(open, s)
		}
	}
	if len(open) > 0 {
		fmt.Fprintln(&picture)
		render.PrintSteps(&picture, render.Text, open)
	}
	printAdoptionStatus(&picture, render.Text, r)
	printSwitching(&picture, render.Text, r)
	printWorkloads(&picture, render.Text, r.Workloads)
	printRollout(&picture, render.Text, r)
	lines := strings.Split(strings.TrimRight(picture.String(), "\n"), "\n")
	if height := p.height(); height > 4 && len(lines) > height-3 {
		lines = append(lines[:height-4], "...")
	}
	foot := "\n" + r.At.Format(time.TimeOnly) + "  Ctrl-C ends the watch and nothing else"
	if !p.drawn {
		fmt.Fprint(p.out, "\033[2J")
		p.drawn = true
	}
	// Line by line over what was there: clearing the screen first would flicker.
	fmt.Fprint(p.out, "\033[H"+strings.Join(append(lines, strings.Split(foot, "\n")...), "\033[K\n")+"\033[K\n\033[J")
}

// lineWriter prints a line for everything that is new.
type lineWriter struct {
	out    io.Writer
	steps  map[passage.Object]string
	values map[string]string
}

func (t *lineWriter) draw(r statusReport) {
	first := t.steps == nil
	before := t.steps
	t.steps = map[passage.Object]string{}
	if t.values == nil {
		t.values = map[string]string{}
	}
	line := fmt.Sprintf("%s to %s: %s", r.Subject, render.OrDash(r.Target), r.State)
	if r.Adoption != nil || r.Switching != nil {
		line = fmt.Sprintf("%s: %s", r.Subject, r.State)
	}
	t.printOnChange(r.At, "state", line, line)
	if r.Rollout != nil {
		t.rollout(r)
		return
	}
	if r.Adoption != nil {
		t.adoption(r)
		return
	}
	if r.Switching != nil {
		t.printOnChange(r.At, "headline", r.Headline, r.Headline)
	}
	t.printSteps(r.At, r.Steps, before, first)
	if w := r.Workloads; w != nil && w.Target != "" {
		t.printSteps(r.At, w.Steps, before, first)
		if w.State == passage.Held && w.Reason != nil {
			line := holdText(*w.Reason)
			t.printOnChange(r.At, "hold", line, "workloads: "+line)
		} else {
			delete(t.values, "hold")
		}
		t.printOnChange(r.At, "workloads", fmt.Sprintf("%s %s %d %d", w.Target, w.State, w.Batch, w.Batches),
			fmt.Sprintf("workloads to %s: %s, %s", w.Target, w.State, progressText(*w)))
	}
}

// rollout tells of a rollout in the operator's own words: its steps come and go, several for the same object.
func (t *lineWriter) rollout(r statusReport) {
	t.printOnChange(r.At, "headline", r.Headline, r.Headline)
	s := r.Rollout
	for _, pod := range s.Pods {
		line := fmt.Sprintf("Pod %s/%s: %s", r.Subject.Namespace, pod.Name, pod.Status)
		if pod.Ready {
			line += ", ready"
		}
		t.printOnChange(r.At, "pod "+pod.Name, line, line)
	}
	if s.Leader != "" {
		line := fmt.Sprintf("environmentd of generation %d: %s", s.Next, s.Leader)
		t.printOnChange(r.At, "leader", line, line)
	}
	if s.Down {
		t.printOnChange(r.At, "down", fmt.Sprint(s.Active), "Serves: "+s.downText())
	} else {
		delete(t.values, "down")
	}
	for _, advice := range s.Advice {
		t.printOnChange(r.At, advice, fmt.Sprint(s.Next), advice)
	}
}

// adoption tells how many objects are done, for there may be thousands, and which of them cannot be.
func (t *lineWriter) adoption(r statusReport) {
	t.printOnChange(r.At, "headline", r.Headline, r.Headline)
	for _, s := range r.Failures {
		t.printOnChange(r.At, s.Object.String(), s.Reason.String(), stepText(s))
	}
}

func (t *lineWriter) printSteps(at time.Time, steps []passage.Step, before map[passage.Object]string, first bool) {
	for _, s := range steps {
		now := string(s.State)
		t.steps[s.Object] = now
		was, known := before[s.Object]
		if was == now || !known && s.State == passage.Pending || first && s.State == passage.Done {
			continue
		}
		t.print(at, stepText(s))
	}
}

func stepText(s passage.Step) string {
	text := s.Object.String() + ": "
	switch {
	case s.State == passage.Running && s.Batch > 0:
		return text + fmt.Sprintf("%s in batch %d", s.Action, s.Batch)
	case s.State == passage.Done && !s.StartedAt.IsZero() && !s.EndedAt.IsZero():
		return text + "done after " + max(0, s.EndedAt.Sub(s.StartedAt)).Round(time.Second).String()
	case s.State == passage.Done:
		return text + "done"
	case s.Action == workload.ActionStay:
		return text + "stays: " + s.Reason.Message
	}
	return text + fmt.Sprintf("%s %s: %s", s.Action, strings.ToLower(string(s.State)), s.Reason.Message)
}

// printOnChange prints a line about something when its news are other ones than before.
func (t *lineWriter) printOnChange(at time.Time, about, news, line string) {
	if t.values[about] != news {
		t.values[about] = news
		t.print(at, line)
	}
}

func (t *lineWriter) print(at time.Time, line string) {
	fmt.Fprintf(t.out, "%s  %s\n", at.Format(time.TimeOnly), line)
}
