package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// steps shows progress: a line per finished step, and on a terminal also what
// is being waited for, with the time it has taken.
type steps struct {
	out      io.Writer
	terminal bool

	mu      sync.Mutex
	current string
	since   time.Time
	stop    chan struct{}
}

func newSteps(out *os.File) *steps {
	s := &steps{out: out, terminal: term.IsTerminal(int(out.Fd())), stop: make(chan struct{})}
	if s.terminal {
		go s.animate()
	}
	return s
}

func (s *steps) doing(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.since = what, time.Now()
}

func (s *steps) done(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		fmt.Fprintf(s.out, "\r\033[K\033[32m✓\033[0m %s\n", what)
	} else {
		fmt.Fprintln(s.out, what)
	}
	s.current = ""
}

func (s *steps) animate() {
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	for i := 0; ; i++ {
		select {
		case <-s.stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
		s.mu.Lock()
		if s.current != "" {
			fmt.Fprintf(s.out, "\r\033[K%c %s %.1fs", frames[i%len(frames)], s.current, time.Since(s.since).Seconds())
		}
		s.mu.Unlock()
	}
}

func (s *steps) finish() {
	close(s.stop)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = "" // for an animation that is just about to show it
	if s.terminal {
		fmt.Fprint(s.out, "\r\033[K")
	}
}
