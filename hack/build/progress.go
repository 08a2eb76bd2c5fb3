package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// progress is how many packages are compiled. They differ in size, but there are thousands.
type progress struct {
	waiting     map[string]bool // packages of the current build that are not compiled yet
	count, all  int
	compiledNow int // without those that were found compiled after all
}

func newProgress(builds []*build) *progress {
	p := &progress{}
	for _, b := range builds {
		p.all += len(b.packages)
	}
	return p
}

func (p *progress) begin(b *build) {
	p.waiting = map[string]bool{}
	for _, one := range b.packages {
		p.waiting[one.path] = true
	}
}

// compiled counts a package that the compiler has begun with.
func (p *progress) compiled(path string) {
	p.compiledNow++
	p.finish(path)
}

func (p *progress) finish(path string) {
	if p.waiting[path] {
		delete(p.waiting, path)
		p.count++
	}
}

// end of a build: what it did not have to compile, an earlier one has compiled.
func (p *progress) end() {
	for path := range p.waiting {
		p.finish(path)
	}
}

// usualPace is what a core needs to compile a package.
const usualPace = 400 * time.Millisecond

// left is how long the rest takes at the pace so far, to which a tenth of the work at the usual pace is added: the first
// packages tell little, and on a busy machine no package may end for minutes.
func (p *progress) left(elapsed time.Duration, cores int) time.Duration {
	known := float64(p.all) / 10
	elapsed += time.Duration(known*float64(usualPace)) / time.Duration(cores)
	return time.Duration(float64(elapsed) * float64(p.all-p.count) / (float64(p.count) + known))
}

func (p *progress) text(title string, elapsed time.Duration, cores int) string {
	if p.count == p.all {
		return fmt.Sprintf("compiled %s: %s packages, linking", title, thousands(p.all))
	}
	return fmt.Sprintf("compiling %s: %s of %s packages, %s left", title, thousands(p.count), thousands(p.all), about(p.left(elapsed, cores)))
}

func thousands(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func about(d time.Duration) string {
	if d < 50*time.Second {
		return "less than a minute"
	}
	return fmt.Sprintf("about %d min", int((d + 30*time.Second).Minutes()))
}

// How often the line moves on a terminal, and how often a new one is written elsewhere.
const (
	moveEvery  = 500 * time.Millisecond
	writeEvery = 30 * time.Second
)

// minPackages is how many packages are more than a moment's work.
const minPackages = 50

// line is the one that moves; where there is no terminal, lines now and then.
type line struct {
	out       io.Writer
	terminal  bool
	title     string
	modules   int
	work      *progress
	began     time.Time
	lastWrite time.Time
	last      string
}

func newLine(out io.Writer, terminal bool, title string) *line {
	return &line{out: out, terminal: terminal, title: title, began: time.Now(), lastWrite: time.Now()}
}

// downloading begins a line of go about a module.
const downloading = "go: downloading "

func (l *line) downloaded(text string) {
	if strings.HasPrefix(text, downloading) {
		l.modules++
	}
}

func (l *line) begin(work *progress) {
	l.work, l.began = work, time.Now()
	l.draw(true)
}

// while keeps the line moving until the work is done, and counts what the work reports.
func (l *line) while(count func(string), work func(report func(string)) error) error {
	reports, done := make(chan string), make(chan error)
	go func() { done <- work(func(text string) { reports <- text }) }()
	tick := time.NewTicker(moveEvery)
	defer tick.Stop()
	for {
		select {
		case text := <-reports:
			count(text)
		case err := <-done:
			return err
		case <-tick.C:
			l.draw(false)
		}
	}
}

func (l *line) draw(now bool) {
	text := ""
	switch {
	case l.work != nil && l.work.all > minPackages:
		text = l.work.text(l.title, time.Since(l.began), runtime.NumCPU())
	case l.work == nil && l.modules > 0:
		text = fmt.Sprintf("downloading the modules of %s: %s so far", l.title, thousands(l.modules))
	default:
		return
	}
	if l.terminal {
		fmt.Fprintf(l.out, "\r%s%s", text, strings.Repeat(" ", max(0, len(l.last)-len(text))))
		l.last = text
		return
	}
	if now || time.Since(l.lastWrite) >= writeEvery {
		fmt.Fprintln(l.out, text)
		l.lastWrite = time.Now()
	}
}

// end leaves a line that tells what was done, if anything was.
func (l *line) end() {
	if l.terminal && l.last != "" {
		fmt.Fprintf(l.out, "\r%s\r", strings.Repeat(" ", len(l.last)))
	}
	if l.work != nil && l.work.compiledNow > minPackages {
		fmt.Fprintf(l.out, "compiled %s: %s packages in %s\n", l.title, thousands(l.work.compiledNow), time.Since(l.began).Round(time.Second))
	}
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
