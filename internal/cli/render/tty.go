package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/passage"
)

// Renderer draws one status after the other.
type Renderer interface {
	Draw(Status)
	// End is called when nothing more is drawn.
	End()
}

// NewRenderer returns a TTY for a terminal, and a LineWriter for anything else.
func NewRenderer(out io.Writer) Renderer {
	file := console.TerminalOf(out)
	if file == nil {
		return NewLineWriter(out)
	}
	return NewTTY(file, func() int {
		_, height, err := term.GetSize(int(file.Fd()))
		if err != nil {
			return 0
		}
		return height
	})
}

// TTY keeps one picture up to date on a terminal.
type TTY struct {
	out    io.Writer
	height func() int
	drawn  bool
}

// NewTTY returns one for a terminal of so many lines; 0 lines are unknown.
func NewTTY(out io.Writer, height func() int) *TTY { return &TTY{out: out, height: height} }

// Draw draws a status over the one before.
func (t *TTY) Draw(s Status) {
	var picture bytes.Buffer
	r := s.Report()
	fmt.Fprintf(&picture, "%s: %s\n", r.Title(), r.State)
	Paragraph(&picture, r.Headline)
	s.DrawDetails(&picture)
	lines := strings.Split(strings.TrimRight(passage.Printable(picture.String()), "\n"), "\n")
	if height := t.height(); height > 4 && len(lines) > height-3 {
		lines = append(lines[:height-4], "...")
	}
	foot := "\n" + r.At.Format(time.TimeOnly) + "  Ctrl-C ends the watch and nothing else"
	if !t.drawn {
		// What was there moves out of the picture, and stays to be scrolled back to.
		fmt.Fprint(t.out, strings.Repeat("\n", t.height())+"\033[2J")
		t.drawn = true
	}
	// Line by line over what was there: clearing the screen first would flicker.
	fmt.Fprint(t.out, "\033[H"+strings.Join(append(lines, strings.Split(foot, "\n")...), "\033[K\n")+"\033[K\n\033[J")
}

// End removes the line about Ctrl-C from the last picture.
func (t *TTY) End() {
	if t.drawn {
		fmt.Fprint(t.out, "\033[1A\033[K")
	}
}
