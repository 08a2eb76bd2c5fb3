package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/fairlead/fairlead/internal/passage"
)

// progress shows how far a command is: as a bar on a terminal, otherwise as a line now and then.
type progress struct {
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

func newProgress(out io.Writer, total int, what string) *progress {
	file, ok := out.(*os.File)
	return &progress{out: out, noun: what, total: total, bar: ok && term.IsTerminal(int(file.Fd())), now: time.Now, shown: time.Now()}
}

// show that so many are done.
func (m *progress) show(done int) {
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

func (m *progress) draw() {
	text := fmt.Sprintf("%d of %d %s", m.last, m.total, m.noun)
	if m.bar {
		fmt.Fprintf(m.out, "\r%s %s\033[K", bar(passage.Counts{Total: m.total, Done: m.last}), text)
		return
	}
	fmt.Fprintln(m.out, text)
}

// end leaves the bar where it is, and the next line to others.
func (m *progress) end() {
	if m.bar && m.total > 0 {
		m.draw()
		fmt.Fprintln(m.out)
	}
}
