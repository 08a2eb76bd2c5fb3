package docs

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
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
	taken := map[string]bool{}
	for _, address := range slices.Compact(addresses) {
		free := freeAddress(t, taken)
		taken[free] = true
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
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG=", "TERM=dumb",
		// What kubectl remembers of another cluster, which had the same port some hours ago, is not true of these.
		"KUBECACHEDIR="+filepath.Join(scratch, "kubecache"))
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

// freeAddress is one that nobody listens at, and that nobody gets by chance before a command of the page listens there: below
// the ports from which localkube chooses, and from which systems take those of outgoing connections.
func freeAddress(t testing.TB, taken map[string]bool) string {
	t.Helper()
	const first, last = 10_000, 20_000
	for range 200 {
		address := fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first))
		if taken[address] {
			continue
		}
		if listener, err := net.Listen("tcp", address); err == nil {
			_ = listener.Close()
			return address
		}
	}
	t.Fatalf("no port between %d and %d is free", first, last)
	return ""
}

// notice is what the shell says of a job that was ended.
var notice = regexp.MustCompile(`^(bash: line \d+: +\d+|\[\d+\][+-]?) +(Terminated|Killed|Done|Exit)`)

// usesTypes finds the commands that use types of the API server at once, whatever it is that has installed them.
var usesTypes = regexp.MustCompile(`^(kubectl|east|west) (apply|create) -f |^bin/fairlead (join|adopt) `)

// awaitTypes waits until kubectl is told of all types that have been installed. The API server lists a new type a moment after
// it is there, and whoever types a command takes longer than that.
func (s *session) awaitTypes(kubectl string) {
	s.t.Helper()
	wait.Until(s.t, func(context.Context) error {
		listed := s.run(pages.Command{Text: kubectl + " api-resources --output name"})
		for _, crd := range s.run(pages.Command{Text: kubectl + " get crds --output name"}) {
			if _, name, isCRD := strings.Cut(crd, "/"); isCRD && !slices.Contains(listed, name) {
				return fmt.Errorf("%s is not listed", name)
			}
		}
		return nil
	})
}

// run types a command and returns what it prints. A command in the background is given the time to print as many lines as
// the page shows.
func (s *session) run(c pages.Command) []string {
	s.t.Helper()
	if uses := usesTypes.FindStringSubmatch(c.Text); uses != nil {
		s.awaitTypes(cmp.Or(uses[1], "kubectl"))
	}
	began := time.Now()
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
	if strings.HasPrefix(c.Text, "bin/localkube up ") {
		wait.ClusterStarted(time.Since(began))
	}
	return printed
}
