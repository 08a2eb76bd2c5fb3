package passage

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the stories in testdata")

// story is a whole migration from its first step to its last, told second by
// second in testdata, for a person to read and to agree with.
type story struct {
	title    string
	plan     Plan
	batching Batching
	takes    map[string]int // seconds, 20 if not told
	fails    string
	dies     []int // the process is killed after each of these writes, and comes back 5 s later
	events   []event
}

// event is something that people do meanwhile.
type event struct {
	second   int
	reported string
	do       func(*world)
}

func TestStory(t *testing.T) {
	threes := Batching{Size: 3, Delay: 30 * time.Second}
	pause := func(w *world) { w.plan.Hold = Hold("Paused", "paused by fairlead.dev/paused") }
	resume := func(w *world) { w.plan.Hold = nil }

	stories := map[string]story{
		"seven-in-threes": {
			title:    "Seven workloads in batches of three, 30s apart. Nothing goes wrong.",
			plan:     planOf(deploys("a b c d e f g")),
			batching: threes,
			takes:    map[string]int{"b": 25, "e": 40},
		},
		"namespaces-first": {
			title:    "Namespaces are relabelled first, all at once; one workload already runs the target, one is skipped.",
			plan:     planOf([]Step{relabel("shop"), relabel("pay"), relabel("web")}, deploys("a", state(Done)), deploys("b c d"), deploys("e", state(Skipped))),
			batching: Batching{Size: 2},
		},
		"failure-in-the-middle": {
			title:    "One of the second batch never becomes ready. The others go on, and it is not forgotten at the end.",
			plan:     planOf(deploys("a b c d e f g")),
			batching: threes,
			takes:    map[string]int{"e": 300},
			fails:    "e",
		},
		"fail-fast": {
			title:    "One of the second batch fails and the policy is to fail fast: those beside it are waited for, nothing more starts.",
			plan:     planOf(deploys("a b c d e f g")),
			batching: Batching{Size: 3, Delay: 30 * time.Second, FailFast: true},
			takes:    map[string]int{"d": 30, "e": 10},
			fails:    "e",
		},
		"pause-and-resume": {
			title:    "Paused while the first batch runs, resumed a minute later, paused again between two batches.",
			plan:     planOf(deploys("a b c d e f g")),
			batching: threes,
			events: []event{
				{5, "fairlead pause", pause},
				{65, "fairlead resume", resume},
				{90, "fairlead pause", pause},
				{100, "fairlead resume", resume},
			},
		},
		"killed-and-restarted": {
			title:    "The process is killed twice: after the first start of batch 1, and after the second of batch 2. Each batch is filled up, not begun anew.",
			plan:     planOf(deploys("a b c d e f g")),
			batching: threes,
			dies:     []int{1, 8},
		},
		"killed-for-long": {
			title:    "The process is killed after one start, and what it started has settled when it comes back. The rest of the batch follows after the delay: nothing starts right after something has settled.",
			plan:     planOf(deploys("a b c d e")),
			batching: threes,
			takes:    map[string]int{"a": 3},
			dies:     []int{1},
		},
		"priorities": {
			title:    "Lower priorities first. No batch mixes two, so some are short.",
			plan:     planOf(deploys("late1 late2", priority(10)), deploys("a b c d"), deploys("canary", priority(-1))),
			batching: Batching{Size: 3, Delay: 10 * time.Second},
		},
		"deleted-and-added": {
			title:    "Workloads go and come while the migration is under way.",
			plan:     planOf(deploys("a b c d e f g")),
			batching: threes,
			events: []event{
				{10, "c, which is running, is deleted: its place in the batch is free, and one batch less will do", func(w *world) { w.remove(deploy("c").Object) }},
				{45, "f and g are deleted", func(w *world) { w.remove(deploy("f").Object); w.remove(deploy("g").Object) }},
				{70, "h appears, on the old revision", func(w *world) { w.plan.Steps = append(w.plan.Steps, deploy("h")) }},
			},
		},
		"size-lowered": {
			title:    "The batch size is lowered from four to one while four are running.",
			plan:     planOf(deploys("a b c d e f")),
			batching: Batching{Size: 4, Delay: 10 * time.Second},
			takes:    map[string]int{"a": 10, "b": 15, "c": 20, "d": 25},
			events: []event{
				{5, "batchSize: 1", func(w *world) { w.batching.Size = 1 }},
			},
		},
		"retry": {
			title:    "One fails, the rest completes, and a person has it tried again.",
			plan:     planOf(deploys("a b c")),
			batching: Batching{Size: 2, Delay: 10 * time.Second},
			fails:    "a",
			events: []event{
				{100, "fairlead retry", func(w *world) {
					a := deploy("a")
					delete(w.fails, a.Object)
					delete(w.begun, a.Object)
					w.plan.Steps[w.place(a.Object)] = a
				}},
			},
		},
	}

	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".golden", story.play(t))
		})
	}
	if *update || t.Failed() {
		return
	}
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, reported := stories[strings.TrimSuffix(filepath.Base(file), ".golden")]; !reported {
			t.Errorf("%s belongs to no story", file)
		}
	}
}

func (s story) play(t *testing.T) string {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\n\n", s.title)

	w := newWorld(t, s.plan, s.batching)
	w.story = &text
	for _, step := range append(s.plan.Steps, deploy("h")) {
		if step.Disruptive {
			w.takes[step.Object] = 20 * time.Second
		}
		if seconds, reported := s.takes[step.Object.Name]; reported {
			w.takes[step.Object] = time.Duration(seconds) * time.Second
		}
		w.fails[step.Object] = strings.Contains(s.fails, step.Object.Name)
	}
	dies := s.dies
	w.mayWrite = func() bool { return len(dies) == 0 || w.writes < dies[0] }

	events := s.events
	for {
		d, err := w.reconcile()
		if errors.Is(err, errDied) {
			dies = dies[1:]
			w.tell("* the process is killed")
			w.now = w.now.Add(5 * time.Second)
			w.tell("* and comes back")
			continue
		}
		next := w.wake(d)
		if len(events) > 0 && (next.IsZero() || !next.Before(at(events[0].second))) {
			w.now = at(events[0].second)
			w.tell("* %s", events[0].reported)
			events[0].do(w)
			events = events[1:]
			continue
		}
		if next.IsZero() {
			return text.String()
		}
		w.now = next
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s tells another story (-want +got); if the new one is right, go test ./internal/passage -run Story -update\n%s", file, diff)
	}
}
