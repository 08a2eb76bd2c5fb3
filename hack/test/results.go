package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const module = "github.com/fairlead/fairlead/"

// shownLines of a failed test are shown; the rest is in the log of the package.
const shownLines = 40

// results are what became of packages so far.
type results struct {
	out  io.Writer
	logs string
	run  int // counted from 0

	mu      sync.Mutex
	printed time.Time // when the last line was
	running map[string]*pkg
	builds  map[string][]string // what the compiler said
	ended   []*pkg
}

// pkg is one run of a package.
type pkg struct {
	name    string
	began   time.Time
	wall    time.Duration
	cpu     time.Duration // of the test and everything that it started; 0 where it was not measured
	cached  bool
	failed  bool
	tests   map[string]*test
	output  []string
	ofTests map[string][]string
}

type test struct {
	name   string
	action string // pass, fail or skip
	wall   time.Duration
}

func newResults(out io.Writer, logs string) *results {
	return &results{out: out, logs: logs, printed: time.Now(), running: map[string]*pkg{}, builds: map[string][]string{}}
}

func (r *results) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Action == "build-output" {
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := r.running[e.Package]
	if p == nil {
		p = &pkg{name: strings.TrimPrefix(e.Package, module), began: time.Now(), tests: map[string]*test{}, ofTests: map[string][]string{}}
		r.running[e.Package] = p
	}
	switch e.Action {
	case "output":
		p.print(e)
	case "pass", "fail", "skip":
		elapsed := time.Duration(e.Elapsed * float64(time.Second))
		if e.Test != "" {
			p.tests[e.Test] = &test{name: e.Test, action: e.Action, wall: elapsed}
			return
		}
		p.wall, p.failed = elapsed, e.Action == "fail"
		if e.FailedBuild != "" {
			p.output = append(p.output, r.builds[e.FailedBuild]...)
		}
		delete(r.running, e.Package)
		r.ended = append(r.ended, p)
		r.write(p)
	}
}

func (p *pkg) print(e event) {
	if spent, found := strings.CutPrefix(e.Output, measured); found {
		p.cpu, _ = time.ParseDuration(strings.TrimSpace(spent))
		return
	}
	p.output = append(p.output, e.Output)
	if e.Test != "" {
		p.ofTests[e.Test] = append(p.ofTests[e.Test], e.Output)
	} else if strings.HasPrefix(e.Output, "ok ") && strings.Contains(e.Output, "(cached)") {
		p.cached = true
	}
}

// isLeaf says that a test has no subtests, or failed although none of its subtests did.
func (p *pkg) isLeaf(name string) bool {
	hasSubtests, explained := false, false
	for other, t := range p.tests {
		if strings.HasPrefix(other, name+"/") {
			hasSubtests = true
			explained = explained || t.action == "fail"
		}
	}
	return !hasSubtests || p.tests[name].action == "fail" && !explained
}

func (p *pkg) leaves() []*test {
	var leaves []*test
	for _, name := range slices.Sorted(maps.Keys(p.tests)) {
		if p.isLeaf(name) {
			leaves = append(leaves, p.tests[name])
		}
	}
	return leaves
}

func (p *pkg) count(action string) int {
	n := 0
	for _, t := range p.leaves() {
		if t.action == action {
			n++
		}
	}
	if action == "fail" && n == 0 && p.failed {
		return 1 // it did not compile, was cut off, or its cluster could not be stopped
	}
	return n
}

// silence is how long nothing may be printed.
const silence = 30 * time.Second

// printProgress says what is going on when nothing has been printed for a while.
func (r *results) printProgress(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.printed) < silence {
		return
	}
	r.printed = now
	var names []string
	for _, p := range r.running {
		names = append(names, p.name)
	}
	if len(names) == 0 {
		fmt.Fprintln(r.out, "...   compiling and linking tests")
		return
	}
	slices.Sort(names)
	fmt.Fprintf(r.out, "...   running %s\n", strings.Join(names, ", "))
}

// write prints the line of a package that has ended, and what failed in it.
func (r *results) write(p *pkg) {
	if !p.failed && len(p.tests) == 0 {
		return // nothing of it was to be run
	}
	r.printed = time.Now()
	log := filepath.Join(r.logs, strings.ReplaceAll(p.name, "/", "-"))
	if r.run > 0 {
		log += fmt.Sprint("-", r.run+1) // the log of a red run stays
	}
	log += ".log"
	if err := os.WriteFile(log, []byte(strings.Join(p.output, "")), 0o644); err != nil {
		fmt.Fprintln(r.out, err)
	}
	state, took := "ok  ", seconds(p.wall)
	switch {
	case p.failed:
		state = "FAIL"
	case p.cached:
		took = "cached"
	}
	counts := fmt.Sprintf("%d passed", p.count("pass"))
	for _, c := range []struct{ action, text string }{{"fail", "failed"}, {"skip", "skipped"}} {
		if n := p.count(c.action); n > 0 {
			counts += fmt.Sprintf(", %d %s", n, c.text)
		}
	}
	fmt.Fprintf(r.out, "%s  %-42s %8s  %s\n", state, p.name, took, counts)
	if !p.failed {
		return
	}
	shown := false
	for _, name := range slices.Sorted(maps.Keys(p.tests)) { // what a test says itself, before what its subtests say
		said := indent(p.ofTests[name])
		if p.tests[name].action == "fail" && (said != "" || p.isLeaf(name)) {
			shown = true
			fmt.Fprintf(r.out, "\n    %s\n%s", name, said)
		}
	}
	if !shown {
		fmt.Fprint(r.out, indent(p.output))
	}
	fmt.Fprintf(r.out, "    everything that %s printed: %s\n\n", p.name, log)
}

func indent(output []string) string {
	var lines []string
	for line := range strings.Lines(strings.Join(output, "")) {
		if trimmed := strings.TrimSpace(line); !strings.HasPrefix(trimmed, "=== ") && !strings.HasPrefix(trimmed, "--- ") {
			lines = append(lines, "    "+strings.TrimRight(line, "\n"))
		}
	}
	lines = shorten(lines)
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// crash is how the Go runtime begins to say why a program ends. What follows is what its goroutines did.
var crash = regexp.MustCompile(`^\s*(panic: |fatal error: |WARNING: DATA RACE)`)

// shorten leaves the lines that tell most: the last ones, and of a crash its beginning.
func shorten(lines []string) []string {
	cut := len(lines) - shownLines
	if cut <= 0 {
		return lines
	}
	if began := slices.IndexFunc(lines, crash.MatchString); began >= 0 {
		cut = min(cut, began)
	}
	shown := slices.Clone(lines[cut : cut+shownLines])
	if cut > 0 {
		shown = slices.Insert(shown, 0, fmt.Sprintf("        (%d lines before)", cut))
	}
	if after := len(lines) - cut - shownLines; after > 0 {
		shown = append(shown, fmt.Sprintf("        (%d lines after)", after))
	}
	return shown
}

// skipped are the reasons for which tests were skipped, and how many were for each.
func (r *results) skipped() map[string]int {
	reasons := map[string]int{}
	for _, p := range r.ended {
		for _, t := range p.leaves() {
			switch {
			case t.action != "skip":
			case strings.HasPrefix(t.name, "Fuzz"):
				reasons["seeds of fuzz tests that are not what these are about"]++
			default:
				reasons[reason(p.ofTests[t.name])]++
			}
		}
	}
	return reasons
}

// reason is the last thing that a test said, without the place where it did.
func reason(output []string) string {
	said := strings.TrimSpace(indent(output))
	if at := strings.LastIndex(said, "\n"); at >= 0 {
		said = strings.TrimSpace(said[at:])
	}
	if place, rest, found := strings.Cut(said, ": "); found && strings.Contains(place, ".go:") {
		return rest
	}
	return said
}

func (r *results) total(action string) int {
	n := 0
	for _, p := range r.ended {
		n += p.count(action)
	}
	return n
}

func (r *results) failed() int { return r.total("fail") }

func (r *results) writeTotal(out io.Writer, took time.Duration) {
	var failed []string
	for _, p := range r.ended {
		if p.failed {
			failed = append(failed, p.name)
		}
	}
	if len(failed) > 0 {
		fmt.Fprintf(out, "\nfailed: %s\n", strings.Join(slices.Compact(slices.Sorted(slices.Values(failed))), ", "))
	}
	reasons := r.skipped()
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(out, "\nskipped %d: %s", reasons[why], why)
	}
	fmt.Fprintf(out, "\ntook %s; what each package printed is in %s\n%d passed, %d failed, %d skipped\n", took.Round(time.Second), r.logs, r.total("pass"), r.failed(), r.total("skip"))
}

// writeSlowest prints where the time goes.
func (r *results) writeSlowest(out io.Writer) {
	const most = 20
	packages := slices.SortedFunc(slices.Values(r.ended), func(a, b *pkg) int { return cmp.Compare(b.wall, a.wall) })
	var wall, cpu time.Duration
	for _, p := range packages {
		wall, cpu = wall+p.wall, cpu+p.cpu
	}
	fmt.Fprintf(out, "\n%-46s %8s %8s\n", "SLOWEST PACKAGES", "WALL", "CPU")
	for _, p := range packages[:min(most, len(packages))] {
		fmt.Fprintf(out, "%-46s %8s %8s\n", p.name, seconds(p.wall), seconds(p.cpu))
	}
	fmt.Fprintf(out, "%-46s %8s %8s\n", "all packages, added up", seconds(wall), seconds(cpu))

	type named struct {
		pkg string
		*test
	}
	var tests []named
	for _, p := range packages {
		for _, t := range p.tests {
			if !strings.Contains(t.name, "/") {
				tests = append(tests, named{p.name, t})
			}
		}
	}
	slices.SortFunc(tests, func(a, b named) int { return cmp.Compare(b.wall, a.wall) })
	fmt.Fprintf(out, "\n%-70s %8s\n", "SLOWEST TESTS", "WALL")
	for _, t := range tests[:min(2*most, len(tests))] {
		fmt.Fprintf(out, "%-70s %8s\n", t.pkg+" "+t.name, seconds(t.wall))
	}
}

// writeRuns prints how often each package was red.
func (r *results) writeRuns(out io.Writer, o options) {
	runs := map[string][]*pkg{}
	for _, p := range r.ended {
		if len(p.tests) > 0 || p.failed {
			runs[p.name] = append(runs[p.name], p)
		}
	}
	fmt.Fprintf(out, "\n%-42s %5s %5s %5s %9s %9s  (%d busy loops)\n", "PACKAGE", "RUNS", "RED", "TESTS", "FASTEST", "SLOWEST", o.load)
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		red := 0
		shortest, longest := runs[name][0].wall, runs[name][0].wall
		for _, p := range runs[name] {
			if p.failed {
				red++
			}
			shortest, longest = min(shortest, p.wall), max(longest, p.wall)
		}
		fmt.Fprintf(out, "%-42s %5d %5d %5d %9s %9s\n", name, len(runs[name]), red, len(runs[name][0].leaves()), seconds(shortest), seconds(longest))
	}
}
