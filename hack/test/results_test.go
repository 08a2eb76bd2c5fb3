package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// events are what go test -json prints of three packages: one is green, one has a red subtest, and one does not compile.
const events = `
{"Action":"start","Package":"github.com/fairlead/fairlead/internal/green"}
{"Action":"output","Package":"github.com/fairlead/fairlead/internal/green","Test":"TestA","Output":"a line of its own\n"}
{"Action":"pass","Package":"github.com/fairlead/fairlead/internal/green","Test":"TestA/one","Elapsed":0.1}
{"Action":"output","Package":"github.com/fairlead/fairlead/internal/green","Test":"TestA/two","Output":"    a_test.go:3: there is no Node: in PATH\n"}
{"Action":"output","Package":"github.com/fairlead/fairlead/internal/green","Test":"TestA/two","Output":"--- SKIP: TestA/two (0.00s)\n"}
{"Action":"skip","Package":"github.com/fairlead/fairlead/internal/green","Test":"TestA/two","Elapsed":0}
{"Action":"pass","Package":"github.com/fairlead/fairlead/internal/green","Test":"TestA","Elapsed":0.1}
{"Action":"output","Package":"github.com/fairlead/fairlead/internal/green","Output":"processor time: 1.5s\n"}
{"Action":"pass","Package":"github.com/fairlead/fairlead/internal/green","Elapsed":0.2}
{"Action":"output","Package":"github.com/fairlead/fairlead/test/red","Test":"TestB/one","Output":"=== RUN   TestB/one\n"}
{"Action":"output","Package":"github.com/fairlead/fairlead/test/red","Test":"TestB/one","Output":"    b_test.go:7: it is red\n"}
{"Action":"fail","Package":"github.com/fairlead/fairlead/test/red","Test":"TestB/one","Elapsed":2}
{"Action":"output","Package":"github.com/fairlead/fairlead/test/red","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"github.com/fairlead/fairlead/test/red","Test":"TestB","Output":"    b_test.go:9: log of the operator: b.log\n"}
{"Action":"fail","Package":"github.com/fairlead/fairlead/test/red","Test":"TestB","Elapsed":2}
{"Action":"pass","Package":"github.com/fairlead/fairlead/test/red","Test":"TestC","Elapsed":1}
{"Action":"fail","Package":"github.com/fairlead/fairlead/test/red","Elapsed":3}
{"ImportPath":"github.com/fairlead/fairlead/test/broken","Action":"build-output","Output":"broken.go:1: undefined: x\n"}
{"Action":"fail","Package":"github.com/fairlead/fairlead/test/broken","Elapsed":0,"FailedBuild":"github.com/fairlead/fairlead/test/broken"}
{"Action":"skip","Package":"github.com/fairlead/fairlead/api/none","Elapsed":0}
`

func TestPrintProgress(t *testing.T) {
	var printed strings.Builder
	all := newResults(&printed, t.TempDir())
	all.printProgress(all.printed.Add(silence - 1))
	all.printProgress(all.printed.Add(silence))
	all.add(event{Action: "start", Package: module + "test/b"})
	all.add(event{Action: "start", Package: module + "test/a"})
	all.printProgress(all.printed.Add(silence))
	want := "...   compiling and linking tests\n...   running test/a, test/b\n"
	if diff := cmp.Diff(want, printed.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestResults(t *testing.T) {
	logs := t.TempDir()
	var printed strings.Builder
	all := newResults(&printed, logs)
	for line := range strings.Lines(strings.TrimSpace(events)) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		all.add(e)
	}
	all.writeTotal(&printed, 5*time.Second)
	want := `ok    internal/green                                 0.2s  1 passed, 1 skipped
FAIL  test/red                                       3.0s  1 passed, 1 failed

    TestB
        b_test.go:9: log of the operator: b.log

    TestB/one
        b_test.go:7: it is red
    everything that test/red printed: LOGS/test-red.log

FAIL  test/broken                                    0.0s  0 passed, 1 failed
    broken.go:1: undefined: x
    everything that test/broken printed: LOGS/test-broken.log


failed: test/broken, test/red

skipped 1: there is no Node: in PATH
took 5s; what each package printed is in LOGS
2 passed, 2 failed, 1 skipped
`
	if diff := cmp.Diff(want, strings.ReplaceAll(printed.String(), logs, "LOGS")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if text, err := os.ReadFile(filepath.Join(logs, "internal-green.log")); err != nil || !strings.HasPrefix(string(text), "a line of its own\n") {
		t.Errorf("log is %q, %v", text, err)
	}
	if got := all.ended[0].cpu; got != 1500*time.Millisecond {
		t.Errorf("processor time is %s", got)
	}
}

// Of a long output, what tells most is shown.
func TestShorten(t *testing.T) {
	numbered := func(n int, word string) (lines []string) {
		for i := range n {
			lines = append(lines, fmt.Sprint("    ", word, " ", i))
		}
		return lines
	}
	told := numbered(10, "told")
	crashed := slices.Concat(told, []string{"    fatal error: concurrent map writes"}, numbered(50, "goroutine"))
	tests := map[string]struct {
		lines, want []string
	}{
		"all of few":       {told, told},
		"the last of many": {numbered(45, "told"), append([]string{"        (5 lines before)"}, numbered(45, "told")[5:]...)},
		"a crash from its beginning on": {crashed, slices.Concat(
			[]string{"        (10 lines before)"}, crashed[10:10+shownLines], []string{"        (11 lines after)"},
		)},
		"a crash that fits": {crashed[:45], append([]string{"        (5 lines before)"}, crashed[5:45]...)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, shorten(tc.lines)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestQuiet(t *testing.T) {
	var out strings.Builder
	q := &quiet{out: &out}
	for _, text := range []string{"go: downloading a v1", ".0\ngo: no such", " module\n", "go: downloading b v2\nwarning\n"} {
		if n, err := q.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if got, want := out.String(), "go: no such module\nwarning\n"; got != want {
		t.Errorf("it shows %q, want %q", got, want)
	}
}
