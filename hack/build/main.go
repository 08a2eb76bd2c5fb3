// Command build builds programs and shows how far it is, on one line that moves.
//
//	build -title "Kubernetes and Istio" -- OUTPUT MODULE [FLAGS] PACKAGE [-- OUTPUT MODULE [FLAGS] PACKAGE]...
//
// What go prints goes to bin/logs/build.log, and is shown if a build fails. A program that did not change keeps its time,
// by which go test tells whether the tests that run it have to run again.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/hack/internal/arguments"
)

func main() {
	title := flag.String("title", "", "what is built, for the progress line")
	flag.Parse()
	if err := run(*title, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(title string, args []string) error {
	builds, err := parse(args)
	if err != nil {
		return err
	}
	path := filepath.Join("bin", "logs", "build.log")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()

	line := newLine(os.Stdout, isTerminal(os.Stdout), title)
	defer line.end()
	if err := line.while(line.downloaded, func(report func(string)) error { return load(builds, log, report) }); err != nil {
		return show(log, err)
	}
	countOnce(builds)
	line.begin(newProgress(builds))
	for _, b := range builds {
		line.work.begin(b)
		err := line.while(line.work.compiled, func(report func(string)) error { return b.build(log, report) })
		line.work.end()
		if err != nil {
			return show(log, fmt.Errorf("build %s: %w", b.output, err))
		}
	}
	return nil
}

// build is one program: a package of a module, and where it goes.
type build struct {
	output   string
	module   string
	flags    []string
	pkg      string
	packages []pkg // that have to be compiled
}

// pkg is what has to be compiled.
type pkg struct {
	path, dir string
}

func parse(args []string) ([]*build, error) {
	var builds []*build
	for _, words := range arguments.Split(args) {
		if len(words) < 3 {
			return nil, fmt.Errorf("%q: want OUTPUT MODULE [FLAGS] PACKAGE", words)
		}
		output, err := filepath.Abs(words[0])
		if err != nil {
			return nil, err
		}
		last := len(words) - 1
		builds = append(builds, &build{output: output, module: words[1], flags: words[2:last], pkg: words[last]})
	}
	if len(builds) == 0 {
		return nil, errors.New("nothing to build")
	}
	return builds, nil
}

// load finds out what has to be compiled for all builds side by side, which downloads their modules. Meanwhile the standard
// library is compiled, which needs no download.
func load(builds []*build, log io.Writer, report func(string)) error {
	var wait sync.WaitGroup
	wait.Go(func() {
		// The builds need the standard library as well, and report its errors.
		_ = goCommand(".", io.Discard, log, func(string) {}, "build", "std")
	})
	errs := make([]error, len(builds))
	for i, b := range builds {
		wait.Go(func() {
			if err := b.load(log, report); err != nil {
				errs[i] = fmt.Errorf("load the packages of %s: %w", b.output, err)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (b *build) load(log io.Writer, report func(string)) error {
	var stdout bytes.Buffer
	// Without its files go list does not look for them, and takes every package that depends on one for stale.
	args := append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,CgoFiles,EmbedFiles,Stale"}, b.flags...)
	err := goCommand(b.module, &stdout, log, report, append(args, b.pkg)...)
	if err != nil {
		return err
	}
	for decoder := json.NewDecoder(&stdout); ; {
		var listed struct {
			ImportPath, Dir string
			Stale           bool
		}
		if err := decoder.Decode(&listed); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if listed.Stale {
			b.packages = append(b.packages, pkg{listed.ImportPath, listed.Dir})
		}
	}
}

// countOnce leaves a package that several builds need to the first of them.
func countOnce(builds []*build) {
	seen := map[string]bool{}
	for _, b := range builds {
		b.packages = slices.DeleteFunc(b.packages, func(p pkg) bool {
			earlier := seen[p.dir]
			seen[p.dir] = true
			return earlier
		})
	}
}

func (b *build) build(log io.Writer, report func(string)) error {
	before := buildID(b.output)
	info, statErr := os.Stat(b.output)
	args := append([]string{"build", "-v", "-o", b.output}, b.flags...)
	if err := goCommand(b.module, log, log, report, append(args, b.pkg)...); err != nil {
		return err
	}
	if before != "" && statErr == nil && before == buildID(b.output) {
		return os.Chtimes(b.output, time.Time{}, info.ModTime())
	}
	return nil
}

func buildID(program string) string {
	id, err := exec.Command("go", "tool", "buildid", program).Output()
	if err != nil {
		return ""
	}
	return string(id)
}

// goCommand runs go in a directory, and reports and logs every line that it prints to stderr.
func goCommand(dir string, stdout, log io.Writer, report func(string), args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stdout = dir, stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		report(lines.Text())
		fmt.Fprintln(log, lines.Text())
	}
	return cmd.Wait()
}

// show adds to an error what go said about it, without the names of what it compiled and downloaded.
func show(log *os.File, err error) error {
	text, readErr := os.ReadFile(log.Name())
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	var said []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if strings.Contains(line, " ") && !strings.HasPrefix(line, downloading) {
			said = append(said, line)
		}
	}
	return fmt.Errorf("%w\n%s\nthe whole log: %s", err, strings.Join(said[max(0, len(said)-50):], "\n"), log.Name())
}
