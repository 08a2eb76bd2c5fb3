package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fairlead/fairlead/internal/passage"
)

// LineWriter prints a line for everything that is new.
type LineWriter struct {
	out io.Writer
	at  time.Time
	// values are the last of each topic; steps and before the states of objects now and in the status before.
	values        map[string]string
	steps, before map[passage.Object]string
	first         bool
}

// NewLineWriter returns one that has printed nothing yet.
func NewLineWriter(out io.Writer) *LineWriter {
	return &LineWriter{out: out, values: map[string]string{}}
}

// Draw prints what is new in a status.
func (l *LineWriter) Draw(s Status) {
	l.first, l.before, l.steps = l.steps == nil, l.steps, map[passage.Object]string{}
	l.at = s.Report().At
	s.WriteChanges(l)
}

// Line prints the line of a topic when it is another one.
func (l *LineWriter) Line(topic, line string) { l.OnChange(topic, line, line) }

// OnChange prints a line when the value of a topic is another one than before.
func (l *LineWriter) OnChange(topic, value, line string) {
	if l.values[topic] != value {
		l.values[topic] = value
		l.print(line)
	}
}

// Forget has the next value of a topic printed, even if it is the last one again.
func (l *LineWriter) Forget(topic string) { delete(l.values, topic) }

// Steps prints the steps whose state is another one.
func (l *LineWriter) Steps(steps []passage.Step, text func(passage.Step) string) {
	for _, s := range steps {
		now := string(s.State)
		l.steps[s.Object] = now
		was, known := l.before[s.Object]
		if was == now || !known && s.State == passage.Pending || l.first && s.State == passage.Done {
			continue
		}
		l.print(text(s))
	}
}

func (l *LineWriter) print(line string) {
	fmt.Fprintf(l.out, "%s  %s\n", l.at.Format(time.TimeOnly), line)
}

// StepText is a step in one line.
func StepText(s passage.Step) string {
	text := s.Object.String() + ": "
	switch {
	case s.State == passage.Running && s.Batch > 0:
		return text + fmt.Sprintf("%s in batch %d", s.Action, s.Batch)
	case s.State == passage.Done && !s.StartedAt.IsZero() && !s.EndedAt.IsZero():
		return text + "done after " + max(0, s.EndedAt.Sub(s.StartedAt)).Round(time.Second).String()
	case s.State == passage.Done:
		return text + "done"
	}
	return text + fmt.Sprintf("%s %s: %s", s.Action, strings.ToLower(string(s.State)), s.Reason.Message)
}

// End has nothing to do: what was written stays.
func (*LineWriter) End() {}
