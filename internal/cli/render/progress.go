package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/passage"
)

// Progress shows how far a command is: as a bar on a terminal, otherwise as a line now and then.
type Progress struct {
	out   io.Writer
	noun  string
	total int
	bar   bool
	now   func() time.Time
	shown time.Time
	last  int
}

// How often the bar moves, and how often a line is written.
const (
	barInterval  = 100 * time.Millisecond
	lineInterval = 2 * time.Second
)

func NewProgress(out io.Writer, total int, what string) *Progress {
	file := console.TerminalOf(out)
	if file != nil {
		out = file
	}
	return &Progress{out: out, noun: what, total: total, bar: file != nil, now: time.Now, shown: time.Now()}
}

// Show that so many are done.
func (m *Progress) Show(done int) {
	every := lineInterval
	if m.bar {
		every = barInterval
	}
	m.last = done
	if now := m.now(); now.Sub(m.shown) >= every || done == m.total {
		m.shown = now
		m.draw()
	}
}

func (m *Progress) draw() {
	text := fmt.Sprintf("%d of %d %s", m.last, m.total, m.noun)
	if m.bar {
		fmt.Fprintf(m.out, "\r%s %s\033[K", Bar(passage.Counts{Total: m.total, Done: m.last}), text)
		return
	}
	fmt.Fprintln(m.out, text)
}

// End leaves the bar where it is, and the next line to others.
func (m *Progress) End() {
	if m.bar && m.total > 0 {
		m.draw()
		fmt.Fprintln(m.out)
	}
}

const barWidth = 30

// Bar shows what is done, what runs and what has failed, each with at least one mark if there is any of it.
func Bar(c passage.Counts) string {
	marks := func(n int) int {
		if n == 0 {
			return 0
		}
		return max(1, n*barWidth/c.Total)
	}
	failed, running := marks(c.Failed), marks(c.Running)
	room := max(0, barWidth-failed-running)
	done := min(marks(c.Done), room)
	if c.Done+c.Running+c.Failed == c.Total {
		done = room
	}
	text := strings.Repeat("#", done) + strings.Repeat(">", running) + strings.Repeat("!", failed)
	return "[" + text + strings.Repeat(".", max(0, barWidth-len(text))) + "]"
}
