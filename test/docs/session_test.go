package docs

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/pages"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// session is a shell in which the commands of a page are typed.
type session struct {
	t          testing.TB
	stdin      io.Writer
	lines      chan string
	here, page *strings.Replacer // from the page's directories and ports to those of this run, and back
}

// ended is printed after a command.
const ended = "--- the command has ended ---"

// addressPattern finds the addresses that a page listens on.
var addressPattern = regexp.MustCompile(`127\.0\.0\.1:\d{4}\b`)

// startSession starts a shell at the root of the repository. What pages put in /tmp is put in a directory of its own, and
// what they listen on is replaced by free ports.
func startSession(t testing.TB, all ...*pages.Page) *session {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	scratch, err := cluster.TempDir("docs")
	if err != nil {
		t.Fatal(err)
	}
	there, back := []string{"/tmp/", scratch + "/"}, []string{scratch + "/", "/tmp/"}
	var addresses []string
	for _, page := range all {
		addresses = append(addresses, addressPattern.FindAllString(strings.Join(page.Lines, "\n"), -1)...)
	}
	slices.Sort(addresses)
	for _, address := range slices.Compact(addresses) {
		free := freeAddress(t)
		there, back = append(there, address, free), append(back, free, address)
	}
	bin := filepath.Join(scratch, "path")
	kubectl := fmt.Sprintf("#!/bin/sh\nexec %s/bin/localkube kubectl \"$@\"\n", root)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(kubectl), 0o755); err != nil {
		t.Fatal(err)
	}

	shell := exec.Command("bash", "--noprofile", "--norc")
	shell.Dir = root
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG=", "TERM=dumb")
	s := &session{t: t, lines: make(chan string, 1<<16), here: strings.NewReplacer(there...), page: strings.NewReplacer(back...)}
	stdin, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdin = stdin
	stdout, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	shell.Stdout, shell.Stderr = output, output
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	_ = output.Close()
	go func() {
		defer close(s.lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		clusters, _ := filepath.Glob(filepath.Join(scratch, "*", "kubeconfig"))
		for _, kubeconfig := range clusters {
			if out, err := cluster.Localkube("down", "--dir", filepath.Dir(kubeconfig), "--delete"); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
		fmt.Fprintln(stdin, "kill $(jobs -p) 2>/dev/null; exit")
		_ = shell.Wait()
		_ = stdout.Close()
		_ = os.RemoveAll(scratch)
	})
	fmt.Fprintln(stdin, "set -m; shopt -s expand_aliases")
	return s
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// notice is what the shell says of a job that was ended.
var notice = regexp.MustCompile(`^(bash: line \d+: +\d+|\[\d+\][+-]?) +(Terminated|Killed|Done|Exit)`)

// run types a command and returns what it prints. A command in the background is given the time to print as many lines as
// the page shows.
func (s *session) run(c pages.Command) []string {
	s.t.Helper()
	text := c.Text
	if c.Confirmed {
		text += " --yes"
	}
	fmt.Fprintf(s.stdin, "%s\necho '%s'\n", s.here.Replace(text), ended)
	deadline := time.After(4 * wait.Deadline())
	var printed []string
	for done := false; !done || c.Background && len(printed) < len(c.Shown); {
		select {
		case line, open := <-s.lines:
			if !open {
				s.t.Fatalf("the shell ended during: %s", c.Text)
			}
			line, last := strings.CutSuffix(line, ended) // after the output, which may not end in a new line
			done = done || last
			if !(last && line == "") && !notice.MatchString(line) {
				printed = append(printed, s.page.Replace(line))
			}
		case <-deadline:
			s.t.Fatalf("has not ended: %s\n%s", c.Text, strings.Join(printed, "\n"))
		}
	}
	return printed
}
